"""Fetches records ahead of the application."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from uuid import UUID

from kafkapy.clients.client_errors import DisconnectError
from kafkapy.clients.client_request import ClientResponse, VersionedRequest
from kafkapy.clients.consumer.completed_fetch import CompletedFetch
from kafkapy.clients.consumer.consumer_metadata import ConsumerMetadata
from kafkapy.clients.consumer.consumer_metrics import ConsumerMetrics
from kafkapy.clients.consumer.consumer_network_client import ConsumerNetworkClient
from kafkapy.clients.consumer.fetch_buffer import FetchBuffer
from kafkapy.clients.consumer.fetch_collector import Fetch, FetchCollector
from kafkapy.clients.consumer.fetch_config import FetchConfig
from kafkapy.clients.consumer.fetch_session_handler import (
    FetchRequestData,
    FetchSessionHandler,
    PartitionRequest,
)
from kafkapy.clients.consumer.request_future import RequestFuture
from kafkapy.clients.consumer.subscription_state import SubscriptionState
from kafkapy.clients.deadline import Deadline
from kafkapy.common.errors import Errors, KafkaError
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.types import ZERO_UUID, TopicPartition
from kafkapy.metadata.broker import Node
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

READ_UNCOMMITTED = 0
READ_COMMITTED = 1
# Less this far from a broker's id is no node's, neither a bootstrap server's.
_CLOSING_NODE_ID = -1_000_000
_LAST_VERSION_WITHOUT_TOPIC_IDS = 12
_FIRST_VERSION_WITH_TOPIC_IDS = 13
_NO_EPOCH = -1
_LEADERSHIP_ERRORS = (Errors.NOT_LEADER_OR_FOLLOWER, Errors.FENCED_LEADER_EPOCH)

OnNewLeader = Callable[[TopicPartition], None]


class Fetcher:
    """Keeps one request per node on its way, one response ahead of what is being handed out.

    A partition is fetched on while the application works on what came before; with two responses
    waiting it has enough, and its node is left alone: a request for the other partitions alone
    could wait at the broker for longer than what is buffered lasts.

    Requests are made and records taken by the thread that polls; responses may also come in by the
    heartbeat thread.

    Ports: org.apache.kafka.clients.consumer.internals.Fetcher
    """

    def __init__(
        self,
        *,
        client: ConsumerNetworkClient,
        metadata: ConsumerMetadata,
        subscriptions: SubscriptionState,
        config: FetchConfig,
        metrics: ConsumerMetrics,
        time: Time,
        on_new_leader: OnNewLeader,
    ) -> None:
        # constant after construction
        self._client = client
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._config = config
        self._metrics = metrics
        self._time = time
        self._on_new_leader = on_new_leader
        self._collector = FetchCollector(
            metadata=metadata,
            subscriptions=subscriptions,
            config=config,
            metrics=metrics,
            time=time,
        )
        self.buffer = FetchBuffer()
        self._lock = threading.Lock()
        # guarded by self._lock
        self._sessions: dict[int, FetchSessionHandler] = {}
        self._nodes_with_pending_fetches: set[int] = set()

    def send_fetches(self) -> int:
        """Queue a request for every node that has none; how many."""
        requests = self._prepare_fetch_requests()
        for node, data in requests:
            future = self._client.send(node, self._request(data))
            self._listen(future, node, data)
        return len(requests)

    def has_available_fetches(self) -> bool:
        """Something has been fetched that could be handed out."""
        fetchable = self._subscriptions.fetchable_partitions()
        return self.buffer.has_completed_fetches(frozenset(fetchable))

    def collect_fetch(self, max_records: int | None = None) -> Fetch:
        return self._collector.collect_fetch(
            self.buffer, max_records or self._config.max_poll_records
        )

    def clear_buffered_data_for_unassigned_partitions(
        self, assigned: frozenset[TopicPartition]
    ) -> None:
        self.buffer.retain_all(assigned)

    def close(self, deadline: Deadline) -> None:
        """Tell the brokers that the sessions have ended: otherwise they keep them for a while."""
        cluster = self._metadata.fetch()
        futures: list[RequestFuture[ClientResponse]] = []
        with self._lock:
            sessions, self._sessions = self._sessions, {}
            waiting = frozenset(self._nodes_with_pending_fetches)
        for node_id, session in sessions.items():
            data = session.close_request()
            node = cluster.node_by_id(node_id)
            if data is None or node is None or self._client.is_unavailable(node):
                continue
            if node_id in waiting:
                # The broker answers in order, and keeps the fetch until there are records or its
                # time is up: another connection is quicker.
                node = Node(_CLOSING_NODE_ID - node_id, node.host, node.port)
            futures.append(self._client.send(node, self._request(data)))
        while not all(future.is_done for future in futures) and not deadline.is_expired:
            self._client.poll(deadline, disable_wakeup=True)

    def _prepare_fetch_requests(self) -> list[tuple[Node, FetchRequestData]]:
        now_ms = self._time.hi_res_clock_ms()
        wanted: dict[Node, dict[TopicPartition, PartitionRequest]] = {}
        satisfied: set[Node] = set()
        buffered = self.buffer.buffered_fetches()
        topic_ids = self._metadata.topic_ids()
        unavailable: dict[Node, bool] = {}
        for partition in self._subscriptions.fetchable_partitions():
            position = self._subscriptions.position_if_assigned(partition)
            if position is None:
                continue
            leader = position.current_leader.leader
            if leader is None:
                logger.debug("%s has no known leader", partition)
                self._metadata.request_update(reset_equivalent_response_backoff=False)
                continue
            node = self._select_read_replica(partition, leader, now_ms)
            with self._lock:
                if node.id in self._nodes_with_pending_fetches:
                    continue
            offset = _next_offset(position.offset, buffered.get(partition, []))
            if offset is None:
                satisfied.add(node)
                continue
            if node not in unavailable:
                unavailable[node] = self._client.is_unavailable(node)
            if unavailable[node]:
                self._client.maybe_raise_auth_failure(node)
                continue
            wanted.setdefault(node, {})[partition] = PartitionRequest(
                topic_ids.get(partition.topic, ZERO_UUID),
                offset,
                self._config.fetch_size,
                position.current_leader.epoch,
            )
        requests = []
        with self._lock:
            for node, partitions in wanted.items():
                if node in satisfied:
                    continue
                session = self._sessions.get(node.id)
                if session is None:
                    session = self._sessions[node.id] = FetchSessionHandler(node.id)
                requests.append((node, session.build(partitions)))
                self._nodes_with_pending_fetches.add(node.id)
        return requests

    def _select_read_replica(self, partition: TopicPartition, leader: Node, now_ms: int) -> Node:
        replica_id = self._subscriptions.preferred_read_replica(partition, now_ms)
        if replica_id is None:
            return leader
        replica = self._metadata.fetch().node_if_online(partition, replica_id)
        if replica is not None:
            return replica
        logger.debug("Replica %d of %s is not online: going to the leader", replica_id, partition)
        self._metadata.request_update(reset_equivalent_response_backoff=False)
        self._subscriptions.clear_preferred_read_replica(partition)
        return leader

    def _request(self, data: FetchRequestData) -> VersionedRequest:
        topics: dict[tuple[str, UUID], FetchRequest.FetchTopic] = {}
        for partition, wanted in data.to_send.items():
            key = (partition.topic, wanted.topic_id)
            topic = topics.get(key)
            if topic is None:
                topic = topics[key] = FetchRequest.FetchTopic(
                    topic=partition.topic, topic_id=wanted.topic_id
                )
            epoch = wanted.current_leader_epoch
            topic.partitions.append(
                FetchRequest.FetchPartition(
                    partition=partition.partition,
                    current_leader_epoch=_NO_EPOCH if epoch is None else epoch,
                    fetch_offset=wanted.fetch_offset,
                    partition_max_bytes=wanted.max_bytes,
                )
            )
        forgotten: dict[tuple[str, UUID], FetchRequest.ForgottenTopic] = {}
        for partition, topic_id in data.to_forget.items():
            gone = forgotten.setdefault(
                (partition.topic, topic_id),
                FetchRequest.ForgottenTopic(topic=partition.topic, topic_id=topic_id),
            )
            gone.partitions.append(partition.partition)
        config = self._config
        return VersionedRequest(
            FetchRequest(
                max_wait_ms=config.max_wait_ms,
                min_bytes=config.min_bytes,
                max_bytes=config.max_bytes,
                isolation_level=READ_COMMITTED if config.read_committed else READ_UNCOMMITTED,
                session_id=data.metadata.session_id,
                session_epoch=data.metadata.epoch,
                topics=list(topics.values()),
                forgotten_topics_data=list(forgotten.values()),
                rack_id=config.client_rack_id,
            ),
            max_version=None if data.can_use_topic_ids else _LAST_VERSION_WITHOUT_TOPIC_IDS,
        )

    def _listen(
        self, future: RequestFuture[ClientResponse], node: Node, data: FetchRequestData
    ) -> None:
        def succeeded(response: ClientResponse) -> None:
            try:
                self._handle_response(node, data, response)
            finally:
                self._no_longer_pending(node)

        def failed(error: KafkaError) -> None:
            try:
                self._handle_failure(node, error)
            finally:
                self._no_longer_pending(node)

        future.add_listener(succeeded, failed)

    def _no_longer_pending(self, node: Node) -> None:
        with self._lock:
            self._nodes_with_pending_fetches.discard(node.id)

    def _handle_response(
        self, node: Node, data: FetchRequestData, response: ClientResponse
    ) -> None:
        message = response.message
        assert isinstance(message, FetchResponse)
        version = response.api_version
        with self._lock:
            session = self._sessions.get(node.id)
            if session is None:
                return  # closed meanwhile
            is_usable = session.handle_response(message, version)
            topic_names: Mapping[UUID, str] = session.session_topic_names
        if not is_usable:
            if message.error_code == Errors.FETCH_SESSION_TOPIC_ID_ERROR.code:
                self._metadata.request_update(reset_equivalent_response_backoff=False)
            return
        size = 0
        new_leaders: dict[TopicPartition, tuple[int, int]] = {}
        for topic in message.responses:
            name = topic.topic
            if version >= _FIRST_VERSION_WITH_TOPIC_IDS:
                name = topic_names[topic.topic_id]
            for partition_data in topic.partitions:
                partition = TopicPartition(name, partition_data.partition_index)
                fetch = CompletedFetch(
                    partition,
                    partition_data,
                    fetch_offset=data.session_partitions[partition].fetch_offset,
                    config=self._config,
                )
                size += fetch.size_in_bytes
                self.buffer.add(fetch)
                if Errors.for_code(partition_data.error_code) in _LEADERSHIP_ERRORS:
                    leader = partition_data.current_leader
                    if leader.leader_id >= 0 and leader.leader_epoch >= 0:
                        new_leaders[partition] = (leader.leader_id, leader.leader_epoch)
        self._metrics.fetched(size, response.request_latency_ms)
        if new_leaders:
            nodes = [Node(n.node_id, n.host, n.port, n.rack) for n in message.node_endpoints]
            for partition in self._metadata.update_partition_leadership(new_leaders, nodes):
                self._on_new_leader(partition)

    def _handle_failure(self, node: Node, error: KafkaError) -> None:
        if isinstance(error, DisconnectError):
            logger.debug("Fetching from %s failed: %s", node, error)
        else:
            logger.warning("Fetching from %s failed: %s", node, error)
        with self._lock:
            session = self._sessions.get(node.id)
            if session is None:
                return
            session.handle_error()
            partitions = list(session.session_partitions)
        for partition in partitions:
            self._subscriptions.clear_preferred_read_replica(partition)


def _next_offset(position: int, buffered: list[CompletedFetch]) -> int | None:
    """Where to fetch on behind what is buffered; None when that is enough, or yet to be handled."""
    if not buffered:
        return position
    first = buffered[0]
    # After a seek what is buffered is of no use, and about to be dropped.
    if len(buffered) > 1 or first.next_fetch_offset != position:
        return None
    return first.end_offset
