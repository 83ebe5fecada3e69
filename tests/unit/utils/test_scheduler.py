import threading

import pytest

from kafkapy.testing.controlled_time import ControlledTime
from kafkapy.utils.scheduler import KafkaScheduler
from kafkapy.utils.time import SystemTime
from tests.helpers.mock_time import MockTime
from tests.helpers.waiting import wait_until


@pytest.fixture
def real():
    scheduler = KafkaScheduler(2, SystemTime(), "test-scheduler-")
    scheduler.startup()
    yield scheduler
    scheduler.shutdown()


def test_tasks_run_in_order_of_their_delay():
    clock = ControlledTime(is_frozen=True)
    scheduler = KafkaScheduler(1, clock)
    scheduler.startup()
    ran = []

    scheduler.schedule_once("late", lambda: ran.append("late"), 60)
    scheduler.schedule_once("early", lambda: ran.append("early"), 1)
    scheduler.schedule_once("now", lambda: ran.append("now"))
    wait_until(lambda: ran == ["now"])
    clock.thaw()
    clock.advance(60)

    assert clock.settle(10_000)
    assert ran == ["now", "early", "late"]
    scheduler.shutdown()


def test_periodic_task_repeats_until_cancelled(real):
    runs = []
    task = real.schedule("tick", lambda: runs.append(1), period_ms=1)

    wait_until(lambda: len(runs) >= 5)
    task.cancel()

    wait_until(lambda: real.pending_task_count() == 0)
    count = len(runs)
    real.schedule_once("fence", lambda: None)
    wait_until(lambda: real.pending_task_count() == 0)
    assert len(runs) <= count + 1


def test_failing_task_is_logged_and_the_thread_lives_on(real, caplog):
    done = threading.Event()

    def fail():
        raise ValueError("no good")

    for _ in range(4):
        real.schedule_once("bad", fail)
    real.schedule_once("good", done.set, 5)

    assert done.wait(10)
    assert "bad" in caplog.text
    assert "no good" in caplog.text


def test_failing_periodic_task_is_run_again(real):
    runs = []

    def fail():
        runs.append(1)
        raise ValueError

    real.schedule("bad", fail, period_ms=1)

    wait_until(lambda: len(runs) >= 3)


def test_earlier_task_overtakes_the_one_waited_for(real):
    done = threading.Event()
    real.schedule_once("far", lambda: None, 60_000)

    real.schedule_once("near", done.set, 5)

    assert done.wait(10)


def test_cancelled_task_never_runs(real):
    ran = []
    done = threading.Event()

    task = real.schedule_once("cancelled", lambda: ran.append(1), 20)
    task.cancel()
    real.schedule_once("after", done.set, 40)

    assert done.wait(10)
    assert ran == []


def test_shutdown_drops_waiting_tasks_and_waits_for_running_ones():
    scheduler = KafkaScheduler(1, SystemTime())
    scheduler.startup()
    started, release, ran = threading.Event(), threading.Event(), []

    def slow():
        started.set()
        release.wait(10)
        ran.append("slow")

    scheduler.schedule_once("slow", slow)
    scheduler.schedule_once("never", lambda: ran.append("never"), 10)
    started.wait(10)
    threading.Timer(0.02, release.set).start()
    scheduler.shutdown()

    assert ran == ["slow"]
    assert not scheduler.is_started


def test_task_scheduled_while_stopped_is_left_out():
    scheduler = KafkaScheduler(1, SystemTime())
    ran = []

    task = scheduler.schedule_once("early", lambda: ran.append(1))
    scheduler.startup()
    scheduler.shutdown()
    task.cancel()

    assert ran == []


def test_starting_twice_is_refused(real):
    with pytest.raises(RuntimeError):
        real.startup()


def test_pool_can_grow_and_shrink():
    scheduler = KafkaScheduler(1, SystemTime())
    scheduler.startup()
    together = threading.Barrier(3, timeout=10)

    scheduler.resize_thread_pool(3)
    results = []
    for _ in range(3):
        scheduler.schedule_once("meet", lambda: results.append(together.wait()))
    wait_until(lambda: len(results) == 3)
    scheduler.resize_thread_pool(1)

    wait_until(lambda: len(scheduler._threads) == 1)
    scheduler.shutdown()


def test_a_jump_of_the_clock_runs_what_it_makes_due_and_a_periodic_task_once():
    clock = ControlledTime()
    scheduler = KafkaScheduler(1, clock)
    scheduler.startup()
    runs = []
    scheduler.schedule("often", lambda: runs.append("often"), delay_ms=60_000, period_ms=60_000)
    scheduler.schedule_once("once", lambda: runs.append("once"), 3_600_000)

    clock.advance(3_600_000)

    assert clock.settle(10_000)
    assert sorted(runs) == ["often", "once"]
    clock.advance(60_000)
    assert clock.settle(10_000)
    assert sorted(runs) == ["often", "often", "once"]
    scheduler.shutdown()


def test_mock_scheduler_runs_due_tasks_when_the_clock_moves(time: MockTime):
    ran = []
    time.scheduler.schedule_once("later", lambda: ran.append("later"), 10)
    time.scheduler.schedule("often", lambda: ran.append("often"), delay_ms=4, period_ms=4)

    time.sleep(3)
    assert ran == []
    time.sleep(7)

    assert ran == ["often", "often", "later"]


def test_mock_scheduler_runs_undelayed_tasks_at_once_and_forgets_cancelled_ones(time: MockTime):
    ran = []

    time.scheduler.schedule_once("now", lambda: ran.append("now"))
    time.scheduler.schedule_once("never", lambda: ran.append("never"), 5).cancel()
    time.sleep(10)

    assert ran == ["now"]
    assert time.scheduler.pending() == []


def test_mock_time_moves_both_clocks_and_can_jump_the_wall_clock(time: MockTime):
    wall, monotonic = time.milliseconds(), time.nanoseconds()

    time.sleep(5)
    time.set_wall_clock_ms(wall + 1_000_000)

    assert time.nanoseconds() == monotonic + 5_000_000
    assert time.hi_res_clock_ms() == (monotonic + 5_000_000) // 1_000_000
    assert time.milliseconds() == wall + 1_000_000
