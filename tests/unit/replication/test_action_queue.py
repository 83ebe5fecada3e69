from kafkapy.replication.action_queue import ActionQueue


def test_actions_run_once_in_order():
    queue, ran = ActionQueue(), []
    queue.add(lambda: ran.append(1))
    queue.add(lambda: ran.append(2))

    queue.try_complete_actions()
    queue.try_complete_actions()

    assert ran == [1, 2]


def test_action_added_by_an_action_waits_for_the_next_call():
    queue, ran = ActionQueue(), []
    queue.add(lambda: (ran.append("first"), queue.add(lambda: ran.append("second"))))

    queue.try_complete_actions()
    assert ran == ["first"]
    queue.try_complete_actions()

    assert ran == ["first", "second"]


def test_failing_action_is_logged_and_the_others_run(caplog):
    queue, ran = ActionQueue(), []

    def fail() -> None:
        raise ValueError("action failed")

    queue.add(fail)
    queue.add(lambda: ran.append(1))

    queue.try_complete_actions()

    assert ran == [1]
    assert "action failed" in caplog.text
