"""Carries out the calls of an admin client on the threads of those who wait for them.

There is no thread in the background. Of the threads that wait, one at a time polls the network, for
everybody's calls; when its own are done it hands that role to another.
"""

from __future__ import annotations

import functools
import logging
import threading
from collections.abc import Callable

from kafkapy.clients.admin.call import Call
from kafkapy.clients.client_errors import DisconnectError, IllegalStateError
from kafkapy.clients.client_request import ClientResponse
from kafkapy.clients.cluster_connection_states import FOREVER_MS
from kafkapy.clients.kafka_client import KafkaClient
from kafkapy.clients.metadata import Metadata
from kafkapy.common.errors import InvalidRequestError, KafkaError, RequestTimeoutError
from kafkapy.metadata.broker import Node
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)


class CallRunner:
    """Finds the node of each call, connects, sends and hands out what comes back. Thread-safe.

    Ports: org.apache.kafka.clients.admin.KafkaAdminClient.AdminClientRunnable
    """

    def __init__(
        self, client: KafkaClient, metadata: Metadata, time: Time, *, request_timeout_ms: int
    ) -> None:
        # constant after construction
        self._client = client
        self._metadata = metadata
        self._time = time
        self._request_timeout_ms = request_timeout_ms
        self._condition = threading.Condition()
        # guarded by self._condition
        self._new_calls: list[Call] = []
        self._poller: int | None = None  # the thread that polls
        self._waiters = 0
        self._is_closed = False
        # for the thread that polls
        self._unsent: list[Call] = []

    def submit(self, call: Call) -> None:
        with self._condition:
            self._new_calls.append(call)
            if self._poller not in (None, threading.get_ident()):
                self._client.wakeup()

    def request_metadata_update(self) -> int:
        """The version of the metadata after which it is fresh."""
        return self._metadata.request_update()

    def run_until(self, is_done: Callable[[], bool]) -> None:
        """Return when it is done; until then this thread polls, or waits for the one that does."""
        with self._condition:
            if self._is_closed:
                raise IllegalStateError("This admin client has been closed")
            self._waiters += 1
        try:
            while self._await_turn(is_done):
                try:
                    while not is_done() and not self._is_closed:
                        self._poll_once()
                finally:
                    with self._condition:
                        self._poller = None
                        self._condition.notify_all()
        finally:
            with self._condition:
                self._waiters -= 1
                self._condition.notify_all()
        if not is_done():
            raise IllegalStateError("This admin client was closed before the call was done")

    def close(self, timeout_ms: int | None = None) -> None:
        """Wait for the calls under way, at most so long; those that are left then fail."""
        timeout_s = None if timeout_ms is None else timeout_ms / 1000
        with self._condition:
            if self._is_closed:
                return
            self._condition.wait_for(lambda: self._waiters == 0, timeout_s)
            self._is_closed = True
            self._client.wakeup()
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._poller is None)
        self._client.close()

    def _await_turn(self, is_done: Callable[[], bool]) -> bool:
        """Whether this thread is to poll; not when it is done."""
        with self._condition:
            self._condition.wait_for(
                lambda: self._poller is None or is_done() or self._is_closed,
            )
            if is_done() or self._is_closed:
                return False
            self._poller = threading.get_ident()
            return True

    def _poll_once(self) -> None:
        now_ms = self._time.hi_res_clock_ms()
        with self._condition:
            self._unsent += self._new_calls
            self._new_calls.clear()
        timeout_ms = self._send_eligible_calls(now_ms)
        self._client.poll(timeout_ms, now_ms)
        with self._condition:
            self._condition.notify_all()

    def _send_eligible_calls(self, now_ms: int) -> int:
        """How long to poll before one of the others may be."""
        calls, self._unsent = self._unsent, []
        try:
            self._metadata.maybe_raise_fatal_error()
        except KafkaError as error:
            for call in calls:
                call.on_failure(error)
            return 0
        timeout_ms = FOREVER_MS
        for call in calls:
            if call.is_wanted():
                timeout_ms = min(timeout_ms, self._advance(call, now_ms))
        with self._condition:
            return 0 if self._new_calls else timeout_ms

    def _advance(self, call: Call, now_ms: int) -> int:
        """Send the call, fail it, or keep it for so long."""
        if now_ms >= call.deadline_ms:
            call.on_failure(RequestTimeoutError(self._what_is_missing(call, now_ms)))
            return 0  # somebody may be done waiting
        if now_ms < call.not_before_ms:
            self._unsent.append(call)
            return min(call.not_before_ms, call.deadline_ms) - now_ms
        node = self._node_for(call, now_ms)
        if node is not None and self._client.ready(node, now_ms):
            try:
                self._send(call, node, now_ms)
            except Exception as failure:
                # It may be another thread's call: the owner must hear of it, and only the owner.
                logger.debug("Cannot send %s", call.name, exc_info=True)
                call.on_failure(InvalidRequestError(f"Cannot send {call.name}: {failure!r}"))
                return 0
            return FOREVER_MS
        self._unsent.append(call)
        wait_ms = call.deadline_ms - now_ms
        return wait_ms if node is None else min(wait_ms, self._client.poll_delay_ms(node, now_ms))

    def _node_for(self, call: Call, now_ms: int) -> Node | None:
        cluster = self._metadata.fetch()
        if (
            cluster.is_bootstrap_configured
            or self._metadata.update_version <= call.after_metadata_version
        ):
            return None  # an update is under way
        node = call.node_provider.provide(cluster, self._client, now_ms)
        if node is None:
            self._metadata.request_update(reset_equivalent_response_backoff=False)
        return node

    def _send(self, call: Call, node: Node, now_ms: int) -> None:
        timeout_ms = min(self._request_timeout_ms, call.deadline_ms - now_ms)
        request = self._client.new_client_request(
            node.id,
            call.build_request(timeout_ms),
            now_ms,
            request_timeout_ms=timeout_ms,
            callback=functools.partial(self._on_complete, call, node),
        )
        self._client.send(request, now_ms)

    def _on_complete(self, call: Call, node: Node, response: ClientResponse) -> None:
        if not call.is_wanted():
            return
        error = response.version_mismatch or response.authentication_error
        if error is not None:
            call.on_failure(error)
        elif response.message is None:
            how = "did not answer in time" if response.timed_out else "disconnected"
            call.on_failure(DisconnectError(f"Node {node} {how}"))
        else:
            try:
                call.on_response(node, response.message)
            except Exception as failure:
                # Whoever waits must hear of it: nobody else will.
                logger.exception("Cannot handle the response to %s", call.name)
                call.on_failure(KafkaError(f"Cannot handle the response to {call.name}: {failure}"))

    def _what_is_missing(self, call: Call, now_ms: int) -> str:
        cluster = self._metadata.fetch()
        if cluster.is_bootstrap_configured:
            return f"cannot reach any of {self._metadata.describe_nodes()}"
        node = call.node_provider.provide(cluster, self._client, now_ms)
        if node is None:
            return f"cannot find {call.node_provider}"
        return f"cannot reach {node}"
