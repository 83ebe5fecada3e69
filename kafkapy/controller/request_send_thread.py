"""Sends one broker the controller's requests, in order, until each is answered."""

from __future__ import annotations

from dataclasses import dataclass
from queue import SimpleQueue

from kafkapy.clients.blocking_node_client import BlockingNodeClient, ClientClosedError
from kafkapy.common.errors import NetworkError, RequestTimeoutError
from kafkapy.common.metrics.stats import Histogram, HistogramInstrument
from kafkapy.common.protocol.schema import Message
from kafkapy.controller.controller_broker_request_batch import ResponseCallback
from kafkapy.controller.state_change_logger import STATE_CHANGE_LOGGER
from kafkapy.utils.log_context import LogContext
from kafkapy.utils.threads import ShutdownableThread
from kafkapy.utils.time import Time

REQUEST_RATE_AND_QUEUE_TIME_MS = Histogram(
    "kafka.controller:type=ControllerChannelManager,name=RequestRateAndQueueTimeMs",
    "How long requests to a broker waited before they were sent.",
    labels=("broker_id",),
)


@dataclass(frozen=True, slots=True)
class QueueItem:
    """A request waiting for its broker.

    Ports: kafka.controller.QueueItem
    """

    request: Message
    version: int
    callback: ResponseCallback
    enqueue_time_ms: int


class RequestSendThread(ShutdownableThread):
    """Takes requests from a broker's queue and sends each until it is answered. One per broker.

    A request is tried again, with the client's backoff, for as long as the broker is registered:
    what it would change must reach the broker, and in order. The thread ends only when the
    channel manager drops the broker.

    Ports: kafka.controller.RequestSendThread
    """

    def __init__(
        self,
        name: str,
        *,
        controller_id: int,
        broker_id: int,
        client: BlockingNodeClient,
        time: Time,
        queue_time_ms: HistogramInstrument,
    ) -> None:
        super().__init__(name)
        self.queue: SimpleQueue[QueueItem | None] = SimpleQueue()  # None wakes up a stopping thread
        self._broker_id = broker_id  # constant after construction
        self.client = client
        self._time = time
        self._queue_time_ms = queue_time_ms
        self._log = LogContext(f"[RequestSendThread controllerId={controller_id}] ").logger(
            __name__
        )
        self._state_change_log = LogContext(f"[Controller id={controller_id}] ").logger(
            STATE_CHANGE_LOGGER
        )

    def do_work(self) -> None:
        item = self.queue.get()
        if item is None:
            return
        self._queue_time_ms.update(self._time.hi_res_clock_ms() - item.enqueue_time_ms)
        try:
            self._process(item)
        except Exception:
            # A request nobody can send or understand must not cut the broker off for good.
            self._log.exception("Giving up %s to broker %d", item.request, self._broker_id)
            self.client.disconnect()

    def initiate_shutdown(self) -> bool:
        initiated = super().initiate_shutdown()
        if initiated:
            self.client.initiate_close()
            self.queue.put(None)
        return initiated

    def _process(self, item: QueueItem) -> None:
        response = self._send_until_answered(item)
        if response is None:
            return
        self._state_change_log.debug(
            "Received response %s for request %s from broker %d",
            response,
            item.request,
            self._broker_id,
        )
        item.callback(response)

    def _send_until_answered(self, item: QueueItem) -> Message | None:
        """None when the thread is to end first."""
        failures = 0
        while self.is_running:
            try:
                return self.client.send_and_receive(item.request, item.version)
            except ClientClosedError:
                return None
            except (NetworkError, RequestTimeoutError) as error:
                failures += 1
                level = self._log.warning if failures in (1, 10, 100) else self._log.debug
                level(
                    "Request %s to broker %s was not answered (attempt %d): %s",
                    type(item.request).__name__,
                    self.client.node,
                    failures,
                    error,
                )
        return None
