import threading
from collections.abc import Callable, Iterator

import pytest

from kafkapy.common.errors import ControllerMovedError
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.controller.controller_event_manager import (
    EVENT_QUEUE_SIZE,
    EVENT_QUEUE_TIME_MS,
    ControllerEventManager,
)
from kafkapy.controller.controller_events import (
    BrokerChange,
    ControlledShutdown,
    ControllerEvent,
    Expire,
    TopicChange,
)
from kafkapy.controller.controller_metrics import ControllerMetrics
from kafkapy.controller.controller_state import ControllerState
from tests.helpers.mock_time import MockTime
from tests.helpers.waiting import wait_until


class Harness:
    def __init__(self) -> None:
        self.time = MockTime()
        self.metrics = MetricsRegistry()
        self.processed: list[ControllerEvent] = []
        self.behave: Callable[[ControllerEvent], None] = lambda event: None
        self.manager = ControllerEventManager(
            7,
            self._process,
            time=self.time,
            metrics=self.metrics,
            event_times=ControllerMetrics(self.metrics).event_times,
        )

    def _process(self, event: ControllerEvent) -> None:
        self.behave(event)
        self.processed.append(event)

    def sample(self, spec: object) -> object:
        return next(sample.value for sample in self.metrics.samples() if sample.spec == spec)


@pytest.fixture
def harness() -> Iterator[Harness]:
    harness = Harness()
    yield harness
    harness.manager.close()


def test_events_are_processed_in_order_on_one_thread(harness: Harness) -> None:
    threads = set()
    harness.behave = lambda event: threads.add(threading.current_thread().name)
    events = [BrokerChange(), TopicChange(), BrokerChange()]

    for event in events:
        harness.manager.put(event)
    harness.manager.start()

    wait_until(lambda: harness.processed == events)
    assert threads == {"controller-event-thread-7"}


def test_failing_event_does_not_end_the_thread(harness: Harness) -> None:
    def fail(event: ControllerEvent) -> None:
        if isinstance(event, BrokerChange):
            raise RuntimeError("broken")

    harness.behave = fail
    harness.manager.start()

    harness.manager.put(BrokerChange())
    harness.manager.put(TopicChange())

    wait_until(lambda: harness.processed == [TopicChange()])


def test_state_is_that_of_the_event_in_progress(harness: Harness) -> None:
    entered, leave = threading.Event(), threading.Event()

    def wait(event: ControllerEvent) -> None:
        entered.set()
        leave.wait(10)

    harness.behave = wait
    harness.manager.start()

    harness.manager.put(TopicChange())

    assert entered.wait(10)
    assert harness.manager.state is ControllerState.TOPIC_CHANGE
    leave.set()
    wait_until(lambda: harness.manager.state is ControllerState.IDLE)


def test_clear_and_put_preempts_what_waits(harness: Harness) -> None:
    outcomes: list[object] = []
    harness.manager.put(ControlledShutdown(1, 2, outcomes.append))

    queued = harness.manager.clear_and_put(Expire())
    harness.manager.start()

    queued.await_processing()
    wait_until(lambda: harness.processed == [Expire()])
    assert isinstance(outcomes[0], ControllerMovedError)


def test_close_preempts_what_waits_and_what_comes_later(harness: Harness) -> None:
    outcomes: list[object] = []
    harness.manager.put(ControlledShutdown(1, 2, outcomes.append))

    harness.manager.close()
    harness.manager.put(ControlledShutdown(1, 2, outcomes.append)).await_processing()

    assert len(outcomes) == 2
    assert harness.processed == []
    assert harness.manager.is_empty


def test_queue_size_and_time_are_measured(harness: Harness) -> None:
    harness.manager.put(TopicChange())
    assert harness.sample(EVENT_QUEUE_SIZE) == 1
    harness.time.sleep(250)

    harness.manager.start()

    wait_until(lambda: harness.processed)
    wait_until(lambda: harness.sample(EVENT_QUEUE_SIZE) == 0)
    waited = harness.sample(EVENT_QUEUE_TIME_MS)
    assert (waited.count, waited.total) == (1, 250)  # type: ignore[attr-defined]
