"""Requests that have been sent, or are being sent, and are not answered yet."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from kafkapy.clients.client_request import ClientRequest, ClientResponse
from kafkapy.clients.cluster_connection_states import FOREVER_MS
from kafkapy.common.errors import ApiError
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.schema import Message


@dataclass(slots=True, eq=False)
class InFlightRequest:
    """One request on its way.

    Ports: org.apache.kafka.clients.NetworkClient.InFlightRequest
    """

    header: RequestHeader
    client_request: ClientRequest
    is_internal: bool
    sent_ms: int

    def completed(self, response: Message | None, now_ms: int) -> ClientResponse:
        request = self.client_request
        return ClientResponse(
            self.header,
            request.destination,
            request.created_ms,
            now_ms,
            response,
            request.callback,
        )

    def disconnected(
        self,
        now_ms: int,
        *,
        timed_out: bool = False,
        authentication_error: ApiError | None = None,
    ) -> ClientResponse:
        request = self.client_request
        return ClientResponse(
            self.header,
            request.destination,
            request.created_ms,
            now_ms,
            None,
            request.callback,
            disconnected=True,
            timed_out=timed_out,
            authentication_error=authentication_error,
        )

    def has_expired(self, now_ms: int) -> bool:
        return now_ms - self.sent_ms > self.client_request.request_timeout_ms

    def time_to_expire_ms(self, now_ms: int) -> int:
        return max(0, self.client_request.request_timeout_ms - (now_ms - self.sent_ms) + 1)


class InFlightRequests:
    """The unanswered requests of each node, oldest first. For one thread.

    Ports: org.apache.kafka.clients.InFlightRequests
    """

    def __init__(self, max_in_flight_requests_per_connection: int) -> None:
        self._max_per_connection = max_in_flight_requests_per_connection
        self._requests: dict[int, deque[InFlightRequest]] = {}
        self._total = 0

    def add(self, request: InFlightRequest) -> None:
        queue = self._requests.setdefault(request.client_request.destination, deque())
        queue.append(request)
        self._total += 1

    def complete_next(self, node_id: int) -> InFlightRequest | None:
        """The oldest request of the node, now answered; None when there is none."""
        queue = self._requests.get(node_id)
        if not queue:
            return None
        self._total -= 1
        return queue.popleft()

    def complete_last_sent(self, node_id: int) -> InFlightRequest:
        self._total -= 1
        return self._requests[node_id].pop()

    def last_sent(self, node_id: int) -> InFlightRequest | None:
        queue = self._requests.get(node_id)
        return queue[-1] if queue else None

    def can_send_more(self, node_id: int) -> bool:
        """Within the limit; that the last one is written is for the connection to say."""
        queue = self._requests.get(node_id)
        return not queue or len(queue) < self._max_per_connection

    def count(self, node_id: int | None = None) -> int:
        if node_id is None:
            return self._total
        return len(self._requests.get(node_id, ()))

    def clear_all(self, node_id: int) -> list[InFlightRequest]:
        """Take away the node's requests, oldest first."""
        cleared = list(self._requests.pop(node_id, ()))
        self._total -= len(cleared)
        return cleared

    def time_to_next_expiry_ms(self, now_ms: int) -> int:
        """FOREVER_MS when nothing is in flight."""
        return min(
            (
                request.time_to_expire_ms(now_ms)
                for queue in self._requests.values()
                for request in queue
            ),
            default=FOREVER_MS,
        )

    def nodes_with_timed_out_requests(self, now_ms: int) -> Iterator[int]:
        for node_id, queue in self._requests.items():
            # Requests have time-outs of their own: a later one may expire first.
            if any(request.has_expired(now_ms) for request in queue):
                yield node_id
