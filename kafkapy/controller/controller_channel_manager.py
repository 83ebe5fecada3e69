"""The controller's connections: one queue and one thread for each broker, itself included."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from kafkapy.clients.blocking_node_client import BlockingNodeClient
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge
from kafkapy.common.protocol.schema import Message
from kafkapy.controller.controller_broker_request_batch import ResponseCallback
from kafkapy.controller.controller_config import ControllerConfig
from kafkapy.controller.request_send_thread import (
    REQUEST_RATE_AND_QUEUE_TIME_MS,
    QueueItem,
    RequestSendThread,
)
from kafkapy.metadata.broker import Broker
from kafkapy.utils.log_context import LogContext
from kafkapy.utils.time import Time

TOTAL_QUEUE_SIZE = Gauge(
    "kafka.controller:type=ControllerChannelManager,name=TotalQueueSize",
    "Requests waiting to be sent to brokers.",
)
QUEUE_SIZE = Gauge(
    "kafka.controller:type=ControllerChannelManager,name=QueueSize",
    "Requests waiting to be sent to one broker.",
    labels=("broker_id",),
)


class ControllerChannelManager:
    """Keeps a RequestSendThread for each live broker. Thread-safe.

    Ports: kafka.controller.ControllerChannelManager
    """

    def __init__(
        self,
        controller_id: int,
        *,
        config: ControllerConfig,
        listener_name: str,
        time: Time,
        metrics: MetricsRegistry,
    ) -> None:
        """`listener_name` is where brokers take controller requests: the control plane's listener
        if there is one, else the inter-broker listener."""
        self._controller_id = controller_id  # constant after construction
        self._config = config
        self._listener_name = listener_name
        self._time = time
        self._metrics = metrics
        self._log = LogContext(f"[Channel manager on controller {controller_id}] ").logger(__name__)
        self._lock = threading.Lock()
        self._threads: dict[int, RequestSendThread] = {}  # guarded by self._lock
        metrics.gauge(TOTAL_QUEUE_SIZE, self._total_queue_size)

    def startup(self, brokers: Iterable[Broker]) -> None:
        for broker in brokers:
            self.add_broker(broker)

    def shutdown(self) -> None:
        with self._lock:
            threads = dict(self._threads)
            self._threads.clear()
        # All are told before any is waited for: each may be in the middle of a connection attempt.
        for thread in threads.values():
            thread.initiate_shutdown()
        for broker_id, thread in threads.items():
            self._finish(broker_id, thread)

    def close(self) -> None:
        self.shutdown()
        self._metrics.remove(TOTAL_QUEUE_SIZE)

    def send_request(
        self, broker_id: int, request: Message, version: int, callback: ResponseCallback
    ) -> None:
        """The callback gets the response on the broker's thread; never, when the broker goes."""
        item = QueueItem(request, version, callback, self._time.hi_res_clock_ms())
        with self._lock:
            thread = self._threads.get(broker_id)
            if thread is not None:
                thread.queue.put(item)
                return
        self._log.warning("Not sending %s to broker %d: it is offline", request, broker_id)

    def add_broker(self, broker: Broker) -> None:
        """Starts its thread; nothing when it has one."""
        with self._lock:
            if broker.id in self._threads:
                return
            thread = self._threads[broker.id] = self._new_thread(broker)
        self._metrics.gauge(QUEUE_SIZE, thread.queue.qsize, broker_id=broker.id)
        thread.start()

    def remove_broker(self, broker_id: int) -> None:
        """Drops what was not sent and waits for the thread to end."""
        with self._lock:
            thread = self._threads.pop(broker_id, None)
        if thread is not None:
            thread.initiate_shutdown()
            self._finish(broker_id, thread)

    def _new_thread(self, broker: Broker) -> RequestSendThread:
        client = BlockingNodeClient(
            broker.node(self._listener_name),
            client_id=str(self._controller_id),
            time=self._time,
            request_timeout_ms=self._config.controller_socket_timeout_ms,
            connection_setup_timeout_ms=self._config.controller_socket_timeout_ms,
        )
        return RequestSendThread(
            f"controller-{self._controller_id}-to-broker-{broker.id}-send-thread",
            controller_id=self._controller_id,
            broker_id=broker.id,
            client=client,
            time=self._time,
            queue_time_ms=self._metrics.histogram(
                REQUEST_RATE_AND_QUEUE_TIME_MS, broker_id=broker.id
            ),
        )

    def _finish(self, broker_id: int, thread: RequestSendThread) -> None:
        thread.await_shutdown()
        thread.client.close()
        self._metrics.remove(QUEUE_SIZE, broker_id=broker_id)
        self._metrics.remove(REQUEST_RATE_AND_QUEUE_TIME_MS, broker_id=broker_id)

    def _total_queue_size(self) -> int:
        with self._lock:
            return sum(thread.queue.qsize() for thread in self._threads.values())
