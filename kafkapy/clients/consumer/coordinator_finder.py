"""Finds the broker that coordinates a group."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from kafkapy.clients.client_request import ClientResponse, VersionedRequest
from kafkapy.clients.consumer.consumer_network_client import ConsumerNetworkClient
from kafkapy.clients.consumer.request_future import RequestFuture
from kafkapy.clients.deadline import Deadline
from kafkapy.common.errors import (
    CoordinatorNotAvailableError,
    Errors,
    GroupAuthorizationError,
    KafkaError,
    RetriableError,
)
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkapy.common.protocol.schema import Message
from kafkapy.metadata.broker import Node
from kafkapy.utils.backoff import ExponentialBackoff
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

_GROUP_KEY_TYPE = 0
_FIRST_VERSION_WITH_MANY_KEYS = 4
# The coordinator's connection is one of its own, so that fetches do not hold heartbeats up: its
# node id must be none that a broker has.
_MAX_NODE_ID = 2**31 - 1


class CoordinatorFinder:
    """The coordinator as far as it is known. Thread-safe, by the lock of its AbstractCoordinator.

    Ports: org.apache.kafka.clients.consumer.internals.AbstractCoordinator
    """

    def __init__(
        self,
        *,
        client: ConsumerNetworkClient,
        group_id: str,
        time: Time,
        lock: threading.RLock | threading.Condition,
        retry_backoff: ExponentialBackoff,
        on_found: Callable[[], None],
    ) -> None:
        # constant after construction
        self._client = client
        self._group_id = group_id
        self._time = time
        self._lock = lock
        self._retry_backoff = retry_backoff
        self._on_found = on_found
        # guarded by self._lock
        self._coordinator: Node | None = None
        self._lookup: RequestFuture[None] | None = None
        self._fatal_error: KafkaError | None = None

    @property
    def coordinator(self) -> Node | None:
        """None also while it cannot be reached; then it is looked up again."""
        with self._lock:
            if self._coordinator is not None and self._client.is_unavailable(self._coordinator):
                self.mark_unknown("it is disconnected")
            return self._coordinator

    def is_unknown(self) -> bool:
        return self.coordinator is None

    def ensure_ready(self, deadline: Deadline, *, disable_wakeup: bool = False) -> bool:
        """Poll until the coordinator is known; False when the deadline came first.

        Raises what cannot be mended by trying again.
        """
        if not self.is_unknown():
            return True
        attempts = 0
        while True:
            error, self._fatal_error = self._fatal_error, None
            if error is not None:
                raise error
            future = self.lookup()
            if not self._client.poll_future(future, deadline, disable_wakeup=disable_wakeup):
                return False
            self.forget_lookup()
            self._fatal_error = None
            if future.failed:
                if not future.is_retriable:
                    raise future.error
                logger.debug("Finding the coordinator failed: %s", future.error)
                # What is awaited here is the coordinator, which the metadata says nothing about.
                self._client.await_metadata_update(deadline, reset_backoff=True)
            elif self.is_unknown():
                # Found, and not to be reached: leave it some time.
                backoff_ms = self._retry_backoff.backoff_ms(attempts)
                self._time.sleep(min(backoff_ms, deadline.remaining_ms))
                attempts += 1
            if not self.is_unknown():
                return True
            if deadline.is_expired:
                return False

    def lookup(self) -> RequestFuture[None]:
        """The look-up under way, or a new one."""
        with self._lock:
            if self._lookup is None:
                node = self._client.least_loaded_node()
                if node is None:
                    return RequestFuture.failure(
                        CoordinatorNotAvailableError("No broker is available to ask")
                    )
                self._lookup = self._send(node)
            return self._lookup

    @property
    def is_lookup_pending(self) -> bool:
        with self._lock:
            return self._lookup is not None

    def forget_lookup(self) -> None:
        with self._lock:
            self._lookup = None

    def mark_unknown(self, cause: object, *, disconnected: bool = False) -> None:
        """`disconnected`: the connection is gone already, and need not be closed."""
        with self._lock:
            old = self._coordinator
            if old is None:
                return
            logger.info("Coordinator %s of group %s is not used: %s", old, self._group_id, cause)
            self._coordinator = None
            # What is still queued for it goes with it, so that nothing waits in vain.
            if not disconnected:
                self._client.disconnect_async(old)

    def _send(self, node: Node) -> RequestFuture[None]:
        logger.debug("Asking %s for the coordinator of group %s", node, self._group_id)
        request = VersionedRequest(self._build, api_key=ApiKeys.FIND_COORDINATOR)
        return self._client.send(node, request).compose(self._handle, self._handle_failure)

    def _build(self, version: int) -> Message:
        if version >= _FIRST_VERSION_WITH_MANY_KEYS:
            return FindCoordinatorRequest(
                key_type=_GROUP_KEY_TYPE, coordinator_keys=[self._group_id]
            )
        return FindCoordinatorRequest(key_type=_GROUP_KEY_TYPE, key=self._group_id)

    def _handle(self, response: ClientResponse, future: RequestFuture[None]) -> None:
        message = response.message
        assert isinstance(message, FindCoordinatorResponse)
        self.forget_lookup()
        answer = message.coordinators[0] if message.coordinators else message
        error = Errors.for_code(answer.error_code)
        if error is Errors.NONE:
            with self._lock:
                node_id = _MAX_NODE_ID - answer.node_id
                self._coordinator = coordinator = Node(node_id, answer.host, answer.port)
            logger.info("Coordinator of group %s: %s", self._group_id, coordinator)
            self._client.try_connect(coordinator)
            self._on_found()
            future.complete(None)
        elif error is Errors.GROUP_AUTHORIZATION_FAILED:
            self._fail(GroupAuthorizationError(f"Not authorized: group {self._group_id}"), future)
        else:
            self._fail(error.exception(answer.error_message), future)

    def _handle_failure(self, error: KafkaError, future: RequestFuture[None]) -> None:
        self.forget_lookup()
        self._fail(error, future)

    def _fail(self, error: KafkaError, future: RequestFuture[None]) -> None:
        if not isinstance(error, RetriableError):
            # Nobody may be waiting for this look-up: whoever waits for the next is to hear of it.
            with self._lock:
                self._fatal_error = error
        future.fail(error)
