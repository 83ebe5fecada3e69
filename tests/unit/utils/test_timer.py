import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.testing.controlled_time import ControlledTime
from kafkapy.utils.time import SystemTime
from kafkapy.utils.timer import SystemTimer, TimerTask, TimerTaskEntry, TimingWheel
from tests.helpers.mock_time import MockTime
from tests.helpers.mock_timer import MockTimer
from tests.helpers.waiting import wait_until


class Task(TimerTask):
    def __init__(self, delay_ms: int, action=lambda: None) -> None:
        super().__init__(delay_ms)
        self._action = action

    def run(self) -> None:
        self._action()


class WheelDriver:
    """A wheel without threads: time stands at one bucket's expiration after the other's."""

    def __init__(self, *, tick_ms: int, wheel_size: int, start_ms: int = 0) -> None:
        self.now_ms = start_ms
        self.buckets = []
        self.fired: list[tuple[int, TimerTaskEntry]] = []
        self.wheel = TimingWheel(
            tick_ms,
            wheel_size,
            start_ms,
            enqueue=lambda bucket: self.buckets.append((bucket.expiration_ms, bucket)),
        )

    def add(self, entry: TimerTaskEntry) -> None:
        if not self.wheel.add(entry) and not entry.cancelled:
            self.fired.append((self.now_ms, entry))

    def run_until(self, end_ms: int) -> None:
        while self.buckets:
            due = min(self.buckets, key=lambda pair: pair[0])
            if due[0] > end_ms:
                break
            self.buckets.remove(due)
            self.now_ms = max(self.now_ms, due[0])
            self.wheel.advance_clock(due[0])
            for entry in due[1].take_all():
                self.add(entry)
        self.now_ms = max(self.now_ms, end_ms)


def _cancel(entry: TimerTaskEntry) -> None:
    entry.cancelled = True
    if entry.bucket is not None:
        entry.bucket.remove(entry)


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    tick_ms=st.integers(1, 5),
    wheel_size=st.integers(2, 20),
    start_ms=st.integers(0, 1000),
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 5000)),
            st.tuples(st.just("cancel"), st.integers(0, 50)),
            st.tuples(st.just("advance"), st.integers(0, 700)),
        ),
        max_size=40,
    ),
)
def test_tasks_fire_in_order_none_lost_and_none_early(tick_ms, wheel_size, start_ms, steps):
    driver = WheelDriver(tick_ms=tick_ms, wheel_size=wheel_size, start_ms=start_ms)
    entries: list[TimerTaskEntry] = []
    fired_before_cancel = set()

    for step, value in steps:
        if step == "add":
            entry = TimerTaskEntry(Task(value), driver.now_ms + value, _cancel)
            entries.append(entry)
            driver.add(entry)
        elif step == "advance":
            driver.run_until(driver.now_ms + value)
        elif entries:
            victim = entries[value % len(entries)]
            if any(entry is victim for _, entry in driver.fired):
                fired_before_cancel.add(victim)
            victim.cancel()
    driver.run_until(start_ms + 40_000)

    fired = [entry for _, entry in driver.fired]
    expected = {entry for entry in entries if not entry.cancelled} | fired_before_cancel
    assert len(fired) == len(set(fired))
    assert set(fired) == expected
    for at_ms, entry in driver.fired:
        # Not before the tick the task expires in, and in that tick if the clock was let run.
        assert at_ms >= entry.expiration_ms - entry.expiration_ms % tick_ms
        assert at_ms < entry.expiration_ms + tick_ms
    times = [at_ms for at_ms, _ in driver.fired]
    assert times == sorted(times)


def test_task_due_within_the_current_tick_is_not_taken():
    driver = WheelDriver(tick_ms=10, wheel_size=3, start_ms=100)

    assert not driver.wheel.add(TimerTaskEntry(Task(0), 109, _cancel))
    assert driver.wheel.add(TimerTaskEntry(Task(0), 110, _cancel))


def test_bucket_is_queued_once_per_expiration():
    driver = WheelDriver(tick_ms=1, wheel_size=10)

    for _ in range(5):
        driver.add(TimerTaskEntry(Task(0), 7, _cancel))
    driver.add(TimerTaskEntry(Task(0), 8, _cancel))

    assert [expiration_ms for expiration_ms, _ in driver.buckets] == [7, 8]


@pytest.fixture
def timer():
    timer = SystemTimer("test", SystemTime())
    yield timer
    timer.close()


def test_task_without_delay_runs_at_once_on_the_executor_thread(timer):
    ran_on = []

    timer.add(Task(0, lambda: ran_on.append(threading.current_thread().name)))

    wait_until(lambda: ran_on)
    assert ran_on == ["executor-test"]
    assert timer.size == 0


def test_tasks_expire_in_order_across_wheels():
    time = MockTime()
    timer = SystemTimer("test", time)
    ran = []
    for delay_ms in (90, 5, 45, 25, 1):
        timer.add(Task(delay_ms, lambda delay_ms=delay_ms: ran.append(delay_ms)))
    assert timer.size == 5

    time.sleep(90)
    while timer.advance_clock(0):
        pass

    wait_until(lambda: len(ran) == 5)
    assert ran == [1, 5, 25, 45, 90]
    assert timer.size == 0
    timer.close()


def test_advance_clock_without_tasks_comes_back_empty_handed(timer):
    assert timer.advance_clock(1) is False


def test_new_task_wakes_a_waiting_clock(timer):
    ran = threading.Event()

    def advance() -> None:
        timer.advance_clock(60_000)
        # The task may have been in a coarser wheel first, if the machine paused for long enough.
        while timer.size:
            timer.advance_clock(60_000)

    clock = threading.Thread(target=advance, daemon=True)
    clock.start()

    timer.add(Task(5, ran.set))

    assert ran.wait(10)
    clock.join(10)
    assert not clock.is_alive()


def test_cancelled_task_never_runs(timer):
    ran = []
    cancelled = Task(5, lambda: ran.append("cancelled"))
    timer.add(cancelled)
    timer.add(Task(10, lambda: ran.append("kept")))

    cancelled.cancel()
    cancelled.cancel()
    assert timer.size == 1
    while timer.advance_clock(100):
        pass

    wait_until(lambda: ran)
    assert ran == ["kept"]


def test_failing_task_does_not_stop_the_timer(timer, caplog):
    ran = threading.Event()

    def fail():
        raise ValueError("task failed")

    timer.add(Task(0, fail))
    timer.add(Task(0, ran.set))

    assert ran.wait(10)
    assert "task failed" in caplog.text


def test_close_ends_a_waiting_clock_and_is_idempotent():
    timer = SystemTimer("test", SystemTime())
    clock = threading.Thread(target=lambda: timer.advance_clock(60_000), daemon=True)
    clock.start()

    timer.close()
    timer.close()

    clock.join(10)
    assert not clock.is_alive()


def test_tasks_added_by_many_threads_all_run(timer):
    ran = []

    def add():
        for i in range(100):
            timer.add(Task(i % 7, lambda: ran.append(1)))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    while timer.advance_clock(50):
        pass

    wait_until(lambda: len(ran) == 400)
    assert timer.size == 0


def test_a_jump_of_the_clock_wakes_the_timer_and_is_settled_when_the_tasks_are_done():
    clock = ControlledTime()
    timer = SystemTimer("test", clock)
    done: list[str] = []
    for name, delay_ms in (("hour", 3_600_000), ("minute", 60_000), ("day", 86_400_000)):
        timer.add(Task(delay_ms, lambda name=name: done.append(name)))
    driver = threading.Thread(target=lambda: [timer.advance_clock(60_000) for _ in range(2)])
    driver.start()

    clock.advance(3_600_000)

    assert clock.settle(10_000)
    assert done == ["minute", "hour"]
    timer.close()
    driver.join()


def test_mock_timer_runs_what_is_due_when_its_clock_is_moved():
    timer = MockTimer(MockTime())
    ran = []
    for delay_ms in (30, 10, 20):
        timer.add(Task(delay_ms, lambda delay_ms=delay_ms: ran.append(delay_ms)))
    cancelled = Task(5, lambda: ran.append(5))
    timer.add(cancelled)
    cancelled.cancel()

    assert timer.size == 3
    assert timer.advance_clock(9) is False
    assert timer.advance_clock(11) is True

    assert ran == [10, 20]
    assert timer.size == 1
