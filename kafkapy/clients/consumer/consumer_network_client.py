"""Requests of a consumer: kept until their node is ready, completed by whichever thread polls."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from kafkapy.clients.api_versions import NodeApiVersions
from kafkapy.clients.client_errors import DisconnectError, WakeupError
from kafkapy.clients.client_request import ClientRequest, ClientResponse, VersionedRequest
from kafkapy.clients.consumer.request_future import RequestFuture
from kafkapy.clients.deadline import Deadline
from kafkapy.clients.kafka_client import KafkaClient
from kafkapy.clients.metadata import Metadata
from kafkapy.common.errors import KafkaError, RequestTimeoutError
from kafkapy.metadata.broker import Node
from kafkapy.utils.fair_lock import FairLock
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

MAX_POLL_TIMEOUT_MS = 5_000


class ConsumerNetworkClient:
    """A KafkaClient for two threads: the one that polls the consumer, and that of the heartbeats.

    Thread-safe. Responses are handled outside the lock, so that a handler may take locks of its
    own; a handler may run in either thread.

    Ports: org.apache.kafka.clients.consumer.internals.ConsumerNetworkClient
    """

    def __init__(
        self,
        client: KafkaClient,
        metadata: Metadata,
        time: Time,
        *,
        retry_backoff_ms: int,
        request_timeout_ms: int,
        max_poll_timeout_ms: int,
    ) -> None:
        # constant after construction
        self._client = client
        self._metadata = metadata
        self._time = time
        self._retry_backoff_ms = retry_backoff_ms
        self.request_timeout_ms = request_timeout_ms
        self._max_poll_timeout_ms = min(max_poll_timeout_ms, MAX_POLL_TIMEOUT_MS)
        self._lock = FairLock()  # around every use of the client but those any thread may make
        # guarded by self._unsent_lock
        self._unsent_lock = threading.Lock()
        self._unsent: dict[Node, deque[ClientRequest]] = {}
        # deques whose operations are single and atomic
        self._pending_completion: deque[Callable[[], None]] = deque()
        self._pending_disconnects: deque[Node] = deque()
        self._wakeup = threading.Event()
        self._wakeups_disabled = False

    # Sending

    def send(
        self, node: Node, request: VersionedRequest, *, request_timeout_ms: int | None = None
    ) -> RequestFuture[ClientResponse]:
        """Queue a request: it goes out with a poll once the node is ready.

        The future fails with DisconnectError when the connection is lost or cannot be made.
        """
        future: RequestFuture[ClientResponse] = RequestFuture()

        def completed(response: ClientResponse) -> None:
            self._pending_completion.append(lambda: self._complete(future, response))

        client_request = self._client.new_client_request(
            node.id,
            request,
            self._time.hi_res_clock_ms(),
            request_timeout_ms=request_timeout_ms or self.request_timeout_ms,
            callback=completed,
        )
        with self._unsent_lock:
            self._unsent.setdefault(node, deque()).append(client_request)
        # A thread in the middle of its poll must not wait for something else to happen first.
        self._client.wakeup()
        return future

    def least_loaded_node(self) -> Node | None:
        with self._lock:
            return self._client.least_loaded_node(self._time.hi_res_clock_ms())

    def is_unavailable(self, node: Node) -> bool:
        """Disconnected, and too soon to try again."""
        with self._lock:
            return (
                self._client.connection_failed(node)
                and self._client.connection_delay_ms(node, self._time.hi_res_clock_ms()) > 0
            )

    def maybe_raise_auth_failure(self, node: Node) -> None:
        with self._lock:
            error = self._client.authentication_error(node)
        if error is not None:
            raise error

    def try_connect(self, node: Node) -> None:
        with self._lock:
            self._client.ready(node, self._time.hi_res_clock_ms())

    def node_api_versions(self, node: Node) -> NodeApiVersions | None:
        """None before the node has said what it supports."""
        with self._lock:
            return self._client.node_api_versions(node.id)

    def has_ready_nodes(self) -> bool:
        with self._lock:
            return self._client.has_ready_nodes(self._time.hi_res_clock_ms())

    # Polling

    def poll(
        self,
        deadline: Deadline,
        should_block: Callable[[], bool] | None = None,
        *,
        disable_wakeup: bool = False,
    ) -> None:
        """One round of I/O, waiting for some up to the deadline while `should_block` says so."""
        self._fire_pending_completed_requests()
        with self._lock:
            self._handle_pending_disconnects()
            now_ms = self._time.hi_res_clock_ms()
            poll_delay_ms = self._try_send(now_ms)
            timeout_ms = 0
            if not self._pending_completion and (should_block is None or should_block()):
                timeout_ms = min(deadline.remaining_ms, poll_delay_ms)
                # Nothing in flight: something may have to be tried again without any I/O.
                if self._client.in_flight_request_count() == 0:
                    timeout_ms = min(timeout_ms, self._retry_backoff_ms)
            self._client.poll(timeout_ms, now_ms)
            now_ms = self._time.hi_res_clock_ms()
            self._check_disconnects(now_ms)
            if not disable_wakeup:
                # After the disconnections, so that nothing is lost: the next poll completes them.
                self.maybe_trigger_wakeup()
            self._try_send(now_ms)
            self._fail_expired_requests(now_ms)
            self._drop_empty_queues()
        self._fire_pending_completed_requests()
        self._metadata.maybe_raise_any_error()

    def poll_no_wakeup(self) -> None:
        """Whatever can be done at once; a wakeup stays for the next poll that can be woken."""
        self.poll(Deadline(self._time, 0), disable_wakeup=True)

    def poll_future(
        self, future: RequestFuture[Any], deadline: Deadline, *, disable_wakeup: bool = False
    ) -> bool:
        """Poll until the future is done; False when the deadline came first."""
        while True:
            self.poll(deadline, lambda: not future.is_done, disable_wakeup=disable_wakeup)
            if future.is_done:
                return True
            if deadline.is_expired:
                return False

    def transmit_sends(self) -> None:
        """Send what is queued and ready, without handling responses or wakeups."""
        with self._lock:
            self._try_send(self._time.hi_res_clock_ms())

    def await_metadata_update(self, deadline: Deadline, *, reset_backoff: bool = False) -> bool:
        """Poll until the metadata has been updated; False when the deadline came first.

        Updates that bring nothing new come ever more slowly, unless that is reset.
        """
        version = self._metadata.request_update(reset_equivalent_response_backoff=reset_backoff)
        while True:
            self.poll(deadline)
            if self._metadata.update_version > version:
                return True
            if deadline.is_expired:
                return False

    def ensure_fresh_metadata(self, deadline: Deadline) -> bool:
        """Wait for an update that is due; True when the metadata is fresh."""
        if self._metadata.update_requested or (
            self._metadata.time_to_next_update_ms(self._time.hi_res_clock_ms()) == 0
        ):
            return self.await_metadata_update(deadline)
        return True

    def await_pending_requests(self, node: Node, deadline: Deadline) -> bool:
        while self.has_pending_requests(node) and not deadline.is_expired:
            self.poll(deadline)
        return not self.has_pending_requests(node)

    def pending_request_count(self, node: Node) -> int:
        with self._lock:
            in_flight = self._client.in_flight_request_count(node.id)
        with self._unsent_lock:
            return in_flight + len(self._unsent.get(node, ()))

    def has_unsent_requests(self) -> bool:
        with self._unsent_lock:
            return any(self._unsent.values())

    def has_pending_requests(self, node: Node | None = None) -> bool:
        if node is not None:
            return self.pending_request_count(node) > 0
        if self.has_unsent_requests():
            return True
        with self._lock:
            return self._client.has_in_flight_requests

    def timeout_error(self, what: str, deadline: Deadline) -> RequestTimeoutError:
        """What a call raises that did not end in the time it was given."""
        message = f"Timeout of {deadline.timeout_ms} ms expired before {what}"
        if not self.has_ready_nodes():
            message += f": no connection to {self._metadata.describe_nodes()}"
        return RequestTimeoutError(message)

    # Other threads

    def wakeup(self) -> None:
        """From any thread: the poll under way, or the next, raises WakeupError."""
        self._wakeup.set()
        self._client.wakeup()

    def disable_wakeups(self) -> None:
        """For closing."""
        self._wakeups_disabled = True

    def disconnect_async(self, node: Node) -> None:
        """With the next poll, by whichever thread."""
        self._pending_disconnects.append(node)
        self._client.wakeup()

    def close(self) -> None:
        with self._lock:
            self._client.close()

    def maybe_trigger_wakeup(self) -> None:
        """WakeupError when `wakeup` has been called; that is then done with."""
        if not self._wakeups_disabled and self._wakeup.is_set():
            self._wakeup.clear()
            raise WakeupError("wakeup() was called")

    def _fire_pending_completed_requests(self) -> None:
        fired = False
        while True:
            try:
                complete = self._pending_completion.popleft()
            except IndexError:
                break
            complete()
            fired = True
        # Another thread may be waiting in its poll for just what has been completed here.
        if fired:
            self._client.wakeup()

    def _complete(self, future: RequestFuture[ClientResponse], response: ClientResponse) -> None:
        if response.authentication_error is not None:
            future.fail(response.authentication_error)
        elif response.version_mismatch is not None:
            future.fail(response.version_mismatch)
        elif response.disconnected:
            future.fail(
                DisconnectError(
                    f"{response.header.api_key.api_name} got no answer: the connection to node"
                    f" {response.destination} was lost"
                )
            )
        else:
            future.complete(response)

    def _try_send(self, now_ms: int) -> int:
        """How long to poll before there may be more to send."""
        poll_delay_ms = self._max_poll_timeout_ms
        with self._unsent_lock:
            queues = [(node, queue) for node, queue in self._unsent.items() if queue]
        for node, queue in queues:
            poll_delay_ms = min(poll_delay_ms, self._client.poll_delay_ms(node, now_ms))
            # Only here, under the client's lock, is anything taken from a queue.
            while queue and self._client.ready(node, now_ms):
                self._client.send(queue.popleft(), now_ms)
        return poll_delay_ms

    def _check_disconnects(self, now_ms: int) -> None:
        """Fail what is queued for nodes that cannot be connected to."""
        with self._unsent_lock:
            queues = [(node, queue) for node, queue in self._unsent.items() if queue]
        for node, queue in queues:
            if self._client.connection_failed(node):
                error = self._client.authentication_error(node)
                while queue:
                    self._fail_unsent(queue.popleft(), now_ms, error)

    def _handle_pending_disconnects(self) -> None:
        now_ms = self._time.hi_res_clock_ms()
        while self._pending_disconnects:
            node = self._pending_disconnects.popleft()
            with self._unsent_lock:
                queue = self._unsent.pop(node, None)
            for request in queue or ():
                self._fail_unsent(request, now_ms, None)
            self._client.disconnect(node.id)

    def _fail_unsent(self, request: ClientRequest, now_ms: int, error: KafkaError | None) -> None:
        assert request.callback is not None
        request.callback(
            ClientResponse(
                request.make_header(request.api_key.max_version),
                request.destination,
                request.created_ms,
                now_ms,
                disconnected=True,
                authentication_error=error,  # type: ignore[arg-type]
            )
        )

    def _fail_expired_requests(self, now_ms: int) -> None:
        with self._unsent_lock:
            queues = [queue for queue in self._unsent.values() if queue]
        for queue in queues:
            # In the order in which they were queued, so those that expire are in front.
            while queue and now_ms - queue[0].created_ms > queue[0].request_timeout_ms:
                request = queue.popleft()
                logger.debug("%s was never sent", request.api_key.api_name)
                self._fail_unsent(request, now_ms, None)

    def _drop_empty_queues(self) -> None:
        with self._unsent_lock:
            for node in [node for node, queue in self._unsent.items() if not queue]:
                del self._unsent[node]
