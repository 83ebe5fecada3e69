"""The single thread on which everything a controller decides happens."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable, Mapping

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge, Histogram, HistogramInstrument
from kafkapy.controller.controller_events import ControllerEvent, ShutdownEventThread
from kafkapy.controller.controller_state import ControllerState
from kafkapy.utils.threads import ShutdownableThread
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

EVENT_QUEUE_SIZE = Gauge(
    "kafka.controller:type=ControllerEventManager,name=EventQueueSize",
    "Controller events waiting to be processed.",
)
EVENT_QUEUE_TIME_MS = Histogram(
    "kafka.controller:type=ControllerEventManager,name=EventQueueTimeMs",
    "How long controller events waited before they were processed.",
)


class QueuedEvent:
    """An event on its way through the queue: processed once, or preempted once. Thread-safe.

    Ports: kafka.controller.QueuedEvent
    """

    def __init__(self, event: ControllerEvent, enqueue_time_ms: int) -> None:
        self.event = event  # constant after construction
        self.enqueue_time_ms = enqueue_time_ms
        self._lock = threading.Lock()
        self._processing_started = threading.Event()
        self._spent = False  # guarded by self._lock

    def process(self, processor: Callable[[ControllerEvent], None]) -> None:
        if self._spend():
            self._processing_started.set()
            processor(self.event)

    def preempt(self) -> None:
        if self._spend():
            self._processing_started.set()
            self.event.preempt()

    def await_processing(self) -> None:
        """Wait until the event thread has taken the event up, or never will."""
        self._processing_started.wait()

    def _spend(self) -> bool:
        with self._lock:
            if self._spent:
                return False
            self._spent = True
            return True


class ControllerEventManager:
    """A queue of events and the one thread that processes them, in order. Thread-safe.

    Ports: kafka.controller.ControllerEventManager
    """

    def __init__(
        self,
        controller_id: int,
        processor: Callable[[ControllerEvent], None],
        *,
        time: Time,
        metrics: MetricsRegistry,
        event_times: Mapping[ControllerState, HistogramInstrument],
    ) -> None:
        self._processor = processor  # constant after construction
        self._time = time
        self._metrics = metrics
        self._event_times = event_times
        self._queue_time_ms = metrics.histogram(EVENT_QUEUE_TIME_MS)
        metrics.gauge(EVENT_QUEUE_SIZE, lambda: len(self._queue))
        self._not_empty = threading.Condition(threading.Lock())
        # guarded by self._not_empty
        self._queue: deque[QueuedEvent] = deque()
        self._closed = False
        self._state = ControllerState.IDLE  # written by the event thread only
        self._thread = _ControllerEventThread(
            f"controller-event-thread-{controller_id}", self._process_next
        )

    @property
    def state(self) -> ControllerState:
        return self._state

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Preempt what waits and what comes later, and let the event in progress finish."""
        self._thread.initiate_shutdown()
        self.clear_and_put(ShutdownEventThread())
        with self._not_empty:
            self._closed = True
        self._thread.await_shutdown()
        with self._not_empty:
            left_over = self._drain_locked()
        for queued in left_over:
            queued.preempt()
        self._metrics.remove(EVENT_QUEUE_SIZE)
        self._metrics.remove(EVENT_QUEUE_TIME_MS)

    def put(self, event: ControllerEvent) -> QueuedEvent:
        queued = QueuedEvent(event, self._time.hi_res_clock_ms())
        with self._not_empty:
            accepted = self._put_locked(queued)
        if not accepted:
            queued.preempt()
        return queued

    def clear_and_put(self, event: ControllerEvent) -> QueuedEvent:
        """Preempt everything that waits; `event` is next."""
        queued = QueuedEvent(event, self._time.hi_res_clock_ms())
        with self._not_empty:
            preempted = self._drain_locked()
            if not self._put_locked(queued):
                preempted.append(queued)
        for old in preempted:
            old.preempt()
        return queued

    @property
    def is_empty(self) -> bool:
        with self._not_empty:
            return not self._queue

    def _put_locked(self, queued: QueuedEvent) -> bool:
        if not self._closed:
            self._queue.append(queued)
            self._not_empty.notify()
        return not self._closed

    def _drain_locked(self) -> list[QueuedEvent]:
        drained = list(self._queue)
        self._queue.clear()
        return drained

    def _process_next(self) -> None:
        with self._not_empty:
            while not self._queue:
                self._not_empty.wait()
            queued = self._queue.popleft()
        if isinstance(queued.event, ShutdownEventThread):
            return
        started_ms = self._time.hi_res_clock_ms()
        self._queue_time_ms.update(started_ms - queued.enqueue_time_ms)
        self._state = queued.event.state
        try:
            queued.process(self._processor)
        except Exception:
            # One bad event must not end the thread: the controller would be silent for ever.
            logger.exception("Uncaught error processing event %s", queued.event)
        finally:
            timer = self._event_times.get(self._state)
            if timer is not None:
                timer.update(self._time.hi_res_clock_ms() - started_ms)
            self._state = ControllerState.IDLE


class _ControllerEventThread(ShutdownableThread):
    def __init__(self, name: str, process_next: Callable[[], None]) -> None:
        super().__init__(name)
        self._process_next = process_next

    def do_work(self) -> None:
        self._process_next()
