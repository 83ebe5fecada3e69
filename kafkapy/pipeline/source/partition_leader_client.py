"""Requests to whichever broker leads a partition."""

from __future__ import annotations

from types import TracebackType
from typing import Self
from uuid import UUID

from kafkapy.clients.client_config import CommonClientConfig
from kafkapy.clients.client_errors import DisconnectError
from kafkapy.clients.client_request import ClientResponse, VersionedRequest
from kafkapy.clients.client_utils import create_network_client, parse_and_validate_addresses
from kafkapy.clients.deadline import Deadline
from kafkapy.common.errors import RequestTimeoutError
from kafkapy.common.protocol.schema import Message
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node
from kafkapy.pipeline.source.topic_metadata import TopicMetadata
from kafkapy.utils.time import Time

_MAX_IN_FLIGHT = 5


class PartitionLeaderClient:
    """One request at a time to the leader of a partition, sent before its answer is wanted.

    For one thread. An answer that comes meanwhile waits in the socket. A failed request is the
    caller's to send again, after `refresh` if another broker may lead by then.
    """

    def __init__(
        self,
        topic_partition: TopicPartition,
        config: CommonClientConfig,
        time: Time,
        *,
        client_id: str,
    ) -> None:
        # constant after construction
        self._topic_partition = topic_partition
        self._config = config
        self._time = time
        self._metadata = TopicMetadata(
            topic_partition.topic,
            refresh_backoff_ms=config.retry_backoff_ms,
            refresh_backoff_max_ms=config.retry_backoff_max_ms,
            metadata_expire_ms=config.metadata_max_age_ms,
        )
        addresses = parse_and_validate_addresses(config.bootstrap_servers, config.client_dns_lookup)
        self._metadata.bootstrap(addresses)
        self._client = create_network_client(
            config,
            time,
            client_id=client_id,
            max_in_flight_requests_per_connection=_MAX_IN_FLIGHT,
            metadata=self._metadata,
        )
        self._answer: ClientResponse | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._client.close()

    @property
    def topic_id(self) -> UUID:
        """As last heard; ZERO_UUID before that, and while there is no such topic."""
        return self._metadata.fetch().topic_id(self._topic_partition.topic)

    @property
    def leader_epoch(self) -> int | None:
        return self._metadata.current_leader(self._topic_partition).epoch

    def send(self, request: VersionedRequest, deadline: Deadline) -> None:
        """RequestTimeoutError when there is no leader, or none that answers, until then."""
        leader = self._ready_leader(deadline)
        now_ms = self._time.hi_res_clock_ms()
        self._answer = None
        self._client.send(
            self._client.new_client_request(leader.id, request, now_ms, callback=self._on_answer),
            now_ms,
        )

    def receive(self) -> Message:
        """The answer to the last request; DisconnectError when the connection was lost first."""
        while self._answer is None:
            # Ended by request.timeout.ms at the latest, as a lost connection.
            self._client.poll(self._config.request_timeout_ms, self._time.hi_res_clock_ms())
        answer, self._answer = self._answer, None
        error = answer.version_mismatch or answer.authentication_error
        if error is not None:
            raise error
        if answer.message is None:
            how = "did not answer in time" if answer.timed_out else "closed the connection"
            raise DisconnectError(f"broker {answer.destination} {how}")
        return answer.message

    def refresh(self, deadline: Deadline) -> None:
        """Learn who leads now, after a pause that grows with every time nothing has changed."""
        version = self._metadata.request_update(reset_equivalent_response_backoff=False)
        while self._metadata.update_version <= version and not deadline.is_expired:
            self._metadata.maybe_raise_any_error()
            self._client.poll(deadline.remaining_ms, self._time.hi_res_clock_ms())

    def _ready_leader(self, deadline: Deadline) -> Node:
        while True:
            self._metadata.maybe_raise_any_error()
            now_ms = self._time.hi_res_clock_ms()
            leader = self._metadata.current_leader(self._topic_partition).leader
            if leader is None:
                wait_ms = self._wait_for_leader_ms()
            elif self._client.ready(leader, now_ms):
                return leader
            elif (error := self._client.authentication_error(leader)) is not None:
                raise error
            else:
                wait_ms = self._client.poll_delay_ms(leader, now_ms)
            if deadline.is_expired:
                raise RequestTimeoutError(self._what_is_missing(leader))
            self._client.poll(min(wait_ms, deadline.remaining_ms), now_ms)

    def _wait_for_leader_ms(self) -> int:
        if not self._metadata.fetch().is_bootstrap_configured:
            self._metadata.request_update(reset_equivalent_response_backoff=False)
        return self._config.retry_backoff_ms

    def _what_is_missing(self, leader: Node | None) -> str:
        if leader is not None:
            return f"its leader, {leader}, cannot be reached"
        cluster = self._metadata.fetch()
        if cluster.is_bootstrap_configured:
            addresses = ", ".join(f"{node.host}:{node.port}" for node in cluster.nodes)
            return f"none of {addresses} (kafka.bootstrap.servers) can be reached"
        if cluster.partition(self._topic_partition) is None:
            return "there is no such partition"
        return "it has no leader"

    def _on_answer(self, response: ClientResponse) -> None:
        self._answer = response
