import random
import threading

import pytest

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.purgatory.delayed_operation import DelayedOperation
from kafkapy.purgatory.delayed_operation_purgatory import (
    NUM_DELAYED_OPERATIONS,
    PURGATORY_SIZE,
    DelayedOperationPurgatory,
)
from kafkapy.utils.time import SystemTime
from kafkapy.utils.timer import SystemTimer
from tests.helpers.mock_time import MockTime
from tests.helpers.mock_timer import MockTimer
from tests.helpers.waiting import wait_until


class MockOperation(DelayedOperation):
    def __init__(self, delay_ms: int = 1000, *, completable: bool = False) -> None:
        super().__init__(delay_ms)
        self.completable = completable
        self.attempts = 0
        self.events: list[str] = []

    def try_complete(self) -> bool:
        self.attempts += 1
        return self.completable and self.force_complete()

    def on_complete(self) -> None:
        self.events.append("complete")

    def on_expiration(self) -> None:
        self.events.append("expire")


class FailingOperation(MockOperation):
    def on_complete(self) -> None:
        super().on_complete()
        raise OSError("no answer could be made")


@pytest.fixture
def timer(time: MockTime) -> MockTimer:
    return MockTimer(time)


@pytest.fixture
def purgatory(timer: MockTimer) -> DelayedOperationPurgatory[MockOperation]:
    return DelayedOperationPurgatory("Test", timer, 0, 1000, reaper_enabled=False)


def test_completable_operation_is_completed_at_once_and_not_watched(purgatory):
    operation = MockOperation(completable=True)

    assert purgatory.try_complete_else_watch(operation, ["key"])

    assert operation.events == ["complete"]
    assert purgatory.watched == 0
    assert purgatory.num_delayed == 0


def test_operation_that_fails_does_not_keep_others_waiting(purgatory):
    first, failing, last = MockOperation(), FailingOperation(), MockOperation()
    for operation in (first, failing, last):
        purgatory.try_complete_else_watch(operation, ["key"])
        operation.completable = True

    assert purgatory.check_and_complete("key") == 2

    assert [o.events for o in (first, failing, last)] == [["complete"]] * 3
    assert purgatory.check_and_complete("key") == 0
    assert purgatory.watched == 0


def test_operation_that_fails_does_not_keep_waiting_from_ending(purgatory):
    failing, last = FailingOperation(), MockOperation()
    for operation in (failing, last):
        purgatory.try_complete_else_watch(operation, ["key"])

    purgatory.end_waiting()

    assert [failing.events, last.events] == [["complete"]] * 2


def test_operation_is_completed_by_a_check_of_any_of_its_keys(purgatory):
    operation = MockOperation()
    assert not purgatory.try_complete_else_watch(operation, ["a", "b"])
    assert (purgatory.watched, purgatory.num_delayed) == (2, 1)

    assert purgatory.check_and_complete("b") == 0
    operation.completable = True
    assert purgatory.check_and_complete("unknown") == 0
    assert purgatory.check_and_complete("b") == 1

    assert operation.events == ["complete"]
    assert purgatory.num_delayed == 0
    assert purgatory.watched == 1  # the other key still holds it until it is looked at
    assert purgatory.check_and_complete("a") == 0
    assert purgatory.watched == 0


def test_condition_that_comes_true_while_being_watched_is_noticed(purgatory):
    class BecomesTrue(MockOperation):
        def try_complete(self) -> bool:
            self.attempts += 1
            return self.attempts > 1 and self.force_complete()

    operation = BecomesTrue()

    assert purgatory.try_complete_else_watch(operation, ["key"])

    assert operation.events == ["complete"]
    assert purgatory.num_delayed == 0


def test_operation_expires_after_its_delay(purgatory, timer):
    operation = MockOperation(20)
    purgatory.try_complete_else_watch(operation, ["key"])

    purgatory.advance_clock(19)
    assert operation.events == []
    purgatory.advance_clock(1)

    assert operation.events == ["complete", "expire"]
    assert operation.is_completed


def test_completed_operation_does_not_expire(purgatory, timer):
    operation = MockOperation(20)
    purgatory.try_complete_else_watch(operation, ["key"])
    operation.completable = True
    purgatory.check_and_complete("key")

    purgatory.advance_clock(50)

    assert operation.events == ["complete"]


def test_operation_that_completes_between_watching_and_timing_is_not_timed(time):
    class LateTimer(MockTimer):
        def add(self, task) -> None:
            task.force_complete()
            super().add(task)

    timer = LateTimer(time)
    purgatory = DelayedOperationPurgatory("Test", timer, reaper_enabled=False)

    purgatory.try_complete_else_watch(operation := MockOperation(), ["key"])

    assert timer.size == 0
    assert operation.events == ["complete"]


def test_force_complete_wins_once():
    operation = MockOperation()

    assert operation.force_complete()
    assert not operation.force_complete()
    operation.run()

    assert operation.events == ["complete"]


def test_safe_try_complete_leaves_a_completed_operation_alone():
    operation = MockOperation(completable=True)
    operation.force_complete()

    assert not operation.safe_try_complete()

    assert operation.attempts == 0


def test_cancel_for_key_returns_operations_uncompleted(purgatory, timer):
    first, second = MockOperation(), MockOperation()
    purgatory.try_complete_else_watch(first, ["key"])
    purgatory.try_complete_else_watch(second, ["key"])

    assert purgatory.cancel_for_key("key") == [first, second]

    assert purgatory.cancel_for_key("key") == []
    assert purgatory.watched == 0
    assert purgatory.num_delayed == 0
    purgatory.advance_clock(5000)
    assert first.events == second.events == []


def test_completed_operations_are_purged_past_the_interval(timer):
    purgatory = DelayedOperationPurgatory("Test", timer, 0, 2, reaper_enabled=False)
    operations = [MockOperation() for _ in range(3)]
    waiting = MockOperation(5000)
    for i, operation in enumerate([*operations, waiting]):
        purgatory.try_complete_else_watch(operation, ["shared", f"own-{i}"])
    for operation in operations[:2]:
        operation.force_complete()
    purgatory.advance_clock(0)
    assert purgatory.watched == 8  # two completed ones may stay

    operations[2].force_complete()
    purgatory.advance_clock(0)

    assert purgatory.watched == 2
    assert not waiting.is_completed


def test_gauges_follow_the_purgatory_and_go_with_it(timer):
    metrics = MetricsRegistry()
    purgatory = DelayedOperationPurgatory("Fetch", timer, 0, 10, metrics, reaper_enabled=False)
    purgatory.try_complete_else_watch(MockOperation(), ["a", "b", "c"])

    samples = {(sample.spec.name, sample.labels): sample.value for sample in metrics.samples()}
    purgatory.shutdown()

    labels = (("delayedOperation", "Fetch"),)
    assert samples == {(PURGATORY_SIZE.name, labels): 3, (NUM_DELAYED_OPERATIONS.name, labels): 1}
    assert list(metrics.samples()) == []
    assert timer.closed


def test_reaper_expires_operations_by_itself_and_shuts_down():
    purgatory = DelayedOperationPurgatory("Test", SystemTimer("test", SystemTime()))
    operations = [MockOperation(delay_ms) for delay_ms in (1, 30, 90)]

    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["key"])
    wait_until(lambda: all(operation.events == ["complete", "expire"] for operation in operations))

    purgatory.shutdown()
    purgatory.shutdown()
    assert not any(
        thread.name.startswith(("ExpirationReaper-0-Test", "executor-test"))
        for thread in threading.enumerate()
    )


def test_concurrent_checks_and_timeouts_complete_each_operation_exactly_once():
    """Conditions come true on other threads while operations are added and time out."""
    purgatory = DelayedOperationPurgatory("Test", SystemTimer("test", SystemTime()), 0, 20)
    ready: set[int] = set()
    completions = [0] * 600
    counting = threading.Lock()
    made: list[DelayedOperation] = []

    class WaitsForNumber(DelayedOperation):
        def __init__(self, number: int, delay_ms: int) -> None:
            super().__init__(delay_ms)
            self.number = number

        def try_complete(self) -> bool:
            return self.number in ready and self.force_complete()

        def on_complete(self) -> None:
            with counting:
                completions[self.number] += 1

        def on_expiration(self) -> None:
            pass

    def add(numbers) -> None:
        rng = random.Random(numbers.start)
        for number in numbers:
            # Every third one can only time out.
            delay_ms = rng.randint(1, 30) if number % 3 == 0 else 60_000
            operation = WaitsForNumber(number, delay_ms)
            made.append(operation)
            purgatory.try_complete_else_watch(operation, [number % 10, f"own-{number}"])

    def make_ready(numbers) -> None:
        for number in numbers:
            if number % 3:
                ready.add(number)
                purgatory.check_and_complete(number % 10)

    threads = [
        threading.Thread(target=target, args=(range(start, start + 200),))
        for target in (add, make_ready)
        for start in (0, 200, 400)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)

    wait_until(lambda: all(operation.is_completed for operation in made))
    wait_until(lambda: purgatory.num_delayed == 0)
    for key in range(10):
        purgatory.check_and_complete(key)
    purgatory.shutdown()
    assert completions == [1] * 600
    assert purgatory.watched < 600 + 20


def test_end_of_waiting_completes_what_waits_and_what_comes_later(purgatory):
    waiting = [MockOperation(), MockOperation()]
    for operation in waiting:
        purgatory.try_complete_else_watch(operation, ["a", "b"])

    purgatory.end_waiting()
    late = MockOperation()
    completed = purgatory.try_complete_else_watch(late, ["a"])

    assert [operation.events for operation in (*waiting, late)] == [["complete"]] * 3
    assert completed
    assert purgatory.num_delayed == 0
