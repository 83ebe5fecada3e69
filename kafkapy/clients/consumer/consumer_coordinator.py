"""A consumer's membership: its subscription, its assignment and its offsets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from kafkapy.clients.client_errors import IllegalStateError, WakeupError
from kafkapy.clients.consumer.abstract_coordinator import AbstractCoordinator
from kafkapy.clients.consumer.assignors import consumer_protocol
from kafkapy.clients.consumer.assignors.consumer_partition_assignor import (
    ConsumerPartitionAssignor,
    RebalanceProtocol,
    Subscription,
)
from kafkapy.clients.consumer.consumer_errors import RetriableCommitFailedError
from kafkapy.clients.consumer.consumer_group_metadata import ConsumerGroupMetadata
from kafkapy.clients.consumer.consumer_interceptor import ConsumerInterceptors
from kafkapy.clients.consumer.consumer_metadata import ConsumerMetadata
from kafkapy.clients.consumer.consumer_metrics import ConsumerMetrics
from kafkapy.clients.consumer.consumer_network_client import ConsumerNetworkClient
from kafkapy.clients.consumer.group_membership import Generation, MemberState
from kafkapy.clients.consumer.group_rebalance_config import GroupRebalanceConfig
from kafkapy.clients.consumer.offset_committer import OffsetCommitter, Offsets
from kafkapy.clients.consumer.request_future import RequestFuture
from kafkapy.clients.consumer.subscription_state import SubscriptionState
from kafkapy.clients.consumer.topic_partition_state import FetchPosition
from kafkapy.clients.deadline import Deadline
from kafkapy.common.errors import KafkaError
from kafkapy.common.protocol.messages.join_group import JoinGroupResponse
from kafkapy.common.types import TopicPartition
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

_LONG_TIME_MS = 2**31 - 1


@dataclass(frozen=True, slots=True)
class MetadataView:
    """The number of partitions of each topic of the group, as of one state of the metadata.

    Ports: org.apache.kafka.clients.consumer.internals.ConsumerCoordinator.MetadataSnapshot
    """

    version: int
    partitions_per_topic: Mapping[str, int]


class ConsumerCoordinator(AbstractCoordinator):
    """Keeps a consumer's partitions those that its group has agreed upon.

    Threading: as AbstractCoordinator; listeners of the application run in the polling thread.

    Ports: org.apache.kafka.clients.consumer.internals.ConsumerCoordinator
    """

    protocol_type = consumer_protocol.PROTOCOL_TYPE

    def __init__(
        self,
        *,
        config: GroupRebalanceConfig,
        client: ConsumerNetworkClient,
        metrics: ConsumerMetrics,
        time: Time,
        assignors: Sequence[ConsumerPartitionAssignor],
        metadata: ConsumerMetadata,
        subscriptions: SubscriptionState,
        interceptors: ConsumerInterceptors,
        auto_commit_interval_ms: int | None,
        rack_id: str | None = None,
    ) -> None:
        """`auto_commit_interval_ms` is None when nothing is committed by itself."""
        super().__init__(config=config, client=client, metrics=metrics, time=time)
        # constant after construction
        self._assignors = {assignor.name: assignor for assignor in assignors}
        self.protocol = _common_protocol(assignors)
        self._metadata = metadata
        self._subscriptions = subscriptions
        self._auto_commit_interval_ms = auto_commit_interval_ms
        self._rack_id = rack_id or None
        self.committer = OffsetCommitter(self, subscriptions, interceptors)
        # used by the polling thread only
        self._next_auto_commit = Deadline(time, auto_commit_interval_ms or 0)
        self._is_leader = False
        self._joined_subscription: frozenset[str] | None = None
        self._metadata_view = MetadataView(-1, {})
        # What the leader's last assignment was made from.
        self._assignment_view: MetadataView | None = None
        self._join_prepare_deadline: Deadline | None = None
        self._auto_commit_future: RequestFuture[None] | None = None

    # Polling

    def poll(self, deadline: Deadline, *, wait_for_join_group: bool = True) -> bool:
        """Join if that is needed, commit if that is due; False when the deadline came first."""
        self._maybe_update_metadata_view()
        self.committer.invoke_completed_callbacks()
        if self._subscriptions.is_auto_assigned:
            # Also when nothing else works: the application is there.
            self.poll_heartbeat()
            if not self.ensure_coordinator_ready(deadline):
                return False
            if self.rejoin_needed_or_pending():
                if self._subscriptions.has_pattern_subscription:
                    # Members that match the pattern against different pictures of the cluster
                    # would rebalance again and again.
                    if not self.client.ensure_fresh_metadata(deadline):
                        return False
                    self._maybe_update_metadata_view()
                join_deadline = deadline if wait_for_join_group else Deadline(self.time, 0)
                if not self.ensure_active_group(join_deadline):
                    return False
        else:
            # By hand assigned partitions need no coordinator; but without any connection somebody
            # has to wait for one.
            if self._metadata.update_requested and not self.client.has_ready_nodes():
                self.client.await_metadata_update(deadline)
            self.client.poll_no_wakeup()
        if self._next_auto_commit.is_expired:
            self.maybe_auto_commit_async()
        return True

    def time_to_next_poll_ms(self) -> int:
        next_ms = self.time_to_next_heartbeat_ms()
        if self._auto_commit_interval_ms is not None:
            next_ms = min(next_ms, self._next_auto_commit.remaining_ms)
        return next_ms

    def rejoin_needed_or_pending(self) -> bool:
        if not self._subscriptions.is_auto_assigned:
            return False
        view = self._assignment_view
        if (
            view is not None
            and view.partitions_per_topic != self._metadata_view.partitions_per_topic
        ):
            self.request_rejoin_if_necessary("the partitions of the group's topics have changed")
            return True
        joined = self._joined_subscription
        if joined is not None and joined != self._subscriptions.subscription:
            self.request_rejoin_if_necessary("the subscription has changed")
            return True
        return super().rejoin_needed_or_pending()

    @property
    def group_metadata(self) -> ConsumerGroupMetadata:
        generation = self.generation
        return ConsumerGroupMetadata(
            self.config.group_id,
            generation.generation_id,
            generation.member_id,
            self.config.group_instance_id,
        )

    def _maybe_update_metadata_view(self) -> None:
        version = self._metadata.update_version
        if version <= self._metadata_view.version:
            return
        cluster = self._metadata.fetch()
        if self._subscriptions.has_pattern_subscription:
            matching = [
                topic
                for topic in cluster.topics
                if self._subscriptions.matches_subscribed_pattern(topic)
            ]
            if self._subscriptions.subscribe_from_pattern(matching):
                self._metadata.request_update_for_new_topics()
        counts = {
            topic: cluster.partition_count_for_topic(topic)
            for topic in self._subscriptions.metadata_topics
        }
        self._metadata_view = MetadataView(
            version, {topic: count for topic, count in counts.items() if count}
        )

    # Joining

    def metadata_protocols(self) -> Sequence[tuple[str, bytes]]:
        topics = self._subscriptions.subscription
        self._joined_subscription = topics
        owned = tuple(sorted(self._subscriptions.assigned_partitions))
        return [
            (
                name,
                consumer_protocol.serialize_subscription(
                    Subscription(
                        tuple(sorted(topics)),
                        assignor.subscription_user_data(topics),
                        owned,
                        self.generation.generation_id,
                        self._rack_id,
                    )
                ),
            )
            for name, assignor in self._assignors.items()
        ]

    def on_join_prepare(self, deadline: Deadline, generation: Generation) -> bool:
        if not self._auto_commit_before_join(deadline):
            return False
        owned = self._subscriptions.assigned_partitions
        failure: Exception | None = None
        if generation.is_reset or not generation.has_member_id:
            if owned:
                failure = self._call_listener_lost(owned)
                self._assign(())
        elif self.protocol is RebalanceProtocol.EAGER:
            failure = self._call_listener_revoked(owned)
            self._assign(())
        else:
            topics = self._subscriptions.subscription
            revoked = frozenset(tp for tp in owned if tp.topic not in topics)
            if revoked:
                failure = self._call_listener_revoked(revoked)
                self._assign(owned - revoked)
        self._is_leader = False
        self._subscriptions.reset_group_subscription()
        self._join_prepare_deadline = None
        _raise_listener_failure(failure)
        return True

    def _auto_commit_before_join(self, deadline: Deadline) -> bool:
        """So that whoever gets the partitions goes on where this member is; False while the commit
        is on its way, though not for longer than the group waits."""
        if self._auto_commit_interval_ms is None:
            return True
        if self._join_prepare_deadline is None:
            self._join_prepare_deadline = Deadline(self.time, self.config.rebalance_timeout_ms)
        if self._auto_commit_future is None:
            if self.protocol is RebalanceProtocol.EAGER:
                # Nothing is to be handed out between the commit and the revocation.
                self._subscriptions.mark_pending_revocation(self._subscriptions.assigned_partitions)
            self._auto_commit_future = self._auto_commit_async()
        future = self._auto_commit_future
        if future is not None:
            wait = min(deadline, self._join_prepare_deadline, key=lambda d: d.remaining_ms)
            self.client.poll_future(future, wait)
            if not self._join_prepare_deadline.is_expired:
                if not future.is_done:
                    return False
                if future.failed and future.is_retriable:
                    self._auto_commit_future = None
                    return False
            if not future.is_done or future.failed:
                logger.warning("Offsets were not committed before the rebalance")
        self._auto_commit_future = None
        return True

    def on_leader_elected(
        self,
        protocol: str,
        members: Sequence[JoinGroupResponse.JoinGroupResponseMember],
        *,
        skip_assignment: bool,
    ) -> Mapping[str, bytes]:
        assignor = self._assignor(protocol)
        self._is_leader = True
        subscriptions = {
            member.member_id: consumer_protocol.deserialize_subscription(
                bytes(member.metadata), group_instance_id=member.group_instance_id
            )
            for member in members
        }
        topics = {topic for subscription in subscriptions.values() for topic in subscription.topics}
        self._watch_group_topics(topics)
        if skip_assignment:
            # A static leader that came back: the group keeps what it has.
            self._assignment_view = self._metadata_view
            return {}
        known = self._metadata_view.partitions_per_topic
        counts = {topic: known[topic] for topic in topics if topic in known}
        if missing := topics - counts.keys():
            logger.warning("Subscribed topics that do not exist: %s", sorted(missing))
        assignments = assignor.assign(counts, subscriptions)
        assigned_topics = {tp.topic for a in assignments.values() for tp in a.partitions}
        if unexpected := assigned_topics - topics:
            self._watch_group_topics(topics | unexpected)
        self._assignment_view = self._metadata_view
        logger.info("Group %s: assigned %s", self.config.group_id, assignments)
        return {
            member: consumer_protocol.serialize_assignment(assignment)
            for member, assignment in assignments.items()
        }

    def _watch_group_topics(self, topics: Collection[str]) -> None:
        """The leader has to notice when any topic of the group changes."""
        if self._subscriptions.group_subscribe(topics):
            self._metadata.request_update_for_new_topics()
        self.client.ensure_fresh_metadata(Deadline(self.time, _LONG_TIME_MS))
        self._metadata_view = MetadataView(-1, {})
        self._maybe_update_metadata_view()

    def on_join_complete(self, generation: Generation, assignment: bytes) -> None:
        if not self._is_leader:
            self._assignment_view = None
        assignor = self._assignor(generation.protocol_name or "")
        received = consumer_protocol.deserialize_assignment(assignment)
        assigned = frozenset(received.partitions)
        owned = self._subscriptions.assigned_partitions
        if not self._subscriptions.matches_subscription(assigned):
            self.request_rejoin("the subscription has changed during the rebalance")
            return
        failure: Exception | None = None
        if self.protocol is RebalanceProtocol.COOPERATIVE and (revoked := owned - assigned):
            failure = self._call_listener_revoked(revoked)
            # Only once they are given up can they go to others.
            self.request_rejoin(f"partitions were revoked: {sorted(map(str, revoked))}")
        self._join_subscription_of(assigned)
        try:
            assignor.on_assignment(received, generation.generation_id)
        except Exception as error:
            failure = failure or error
        if self._auto_commit_interval_ms is not None:
            self._next_auto_commit.reset(self._auto_commit_interval_ms)
        self._assign(received.partitions)
        failure = self._call_listener_assigned(assigned - owned) or failure
        _raise_listener_failure(failure)

    def _join_subscription_of(self, assigned: Collection[TopicPartition]) -> None:
        """The leader may have matched the pattern with topics that this member has not seen."""
        if not self._subscriptions.has_pattern_subscription or self._joined_subscription is None:
            return
        added = {tp.topic for tp in assigned} - self._joined_subscription
        if added:
            self._subscriptions.subscribe_from_pattern(self._subscriptions.subscription | added)
            self._joined_subscription |= added

    def _assign(self, partitions: Collection[TopicPartition]) -> None:
        self._subscriptions.assign_from_subscribed(partitions)
        self.metrics.assigned(self._subscriptions.assigned_partitions)

    def _assignor(self, name: str) -> ConsumerPartitionAssignor:
        assignor = self._assignors.get(name)
        if assignor is None:
            raise IllegalStateError(f"The coordinator chose an assignor nobody offered: {name}")
        return assignor

    # Leaving

    def on_leave_prepare(self) -> None:
        dropped = self._subscriptions.assigned_partitions
        if not self._subscriptions.is_auto_assigned or not dropped:
            return
        with self.lock:
            is_lost = self._generation.is_reset or self.state is MemberState.PREPARING_REBALANCE
        failure = (
            self._call_listener_lost(dropped) if is_lost else self._call_listener_revoked(dropped)
        )
        self._assign(())
        _raise_listener_failure(failure)

    def close(self, deadline: Deadline, *, autocommit: bool = True) -> None:
        self.client.disable_wakeups()
        try:
            if autocommit:
                self._auto_commit_sync(deadline)
            self.committer.await_pending_commits(deadline)
        finally:
            super().close(deadline)

    # Listeners

    def _call_listener_revoked(self, revoked: frozenset[TopicPartition]) -> Exception | None:
        logger.info("Group %s: revoking %s", self.config.group_id, sorted(map(str, revoked)))
        paused = revoked & self._subscriptions.paused_partitions
        if paused:
            logger.info("These were paused, and are no more: %s", sorted(map(str, paused)))
        listener = self._subscriptions.rebalance_listener
        return None if listener is None else _call(listener.on_partitions_revoked, revoked)

    def _call_listener_lost(self, lost: frozenset[TopicPartition]) -> Exception | None:
        logger.info("Group %s: lost %s", self.config.group_id, sorted(map(str, lost)))
        listener = self._subscriptions.rebalance_listener
        return None if listener is None else _call(listener.on_partitions_lost, lost)

    def _call_listener_assigned(self, added: frozenset[TopicPartition]) -> Exception | None:
        logger.info("Group %s: adding %s", self.config.group_id, sorted(map(str, added)))
        listener = self._subscriptions.rebalance_listener
        return None if listener is None else _call(listener.on_partitions_assigned, added)

    # Offsets

    def init_with_committed_offsets_if_needed(self, deadline: Deadline) -> bool:
        """Positions for partitions that have none; False when the deadline came first."""
        partitions = self._subscriptions.initializing_partitions()
        offsets = self.committer.fetch_committed(partitions, deadline)
        if offsets is None:
            return False
        for partition, committed in offsets.items():
            if committed is None:
                continue
            self._metadata.update_last_seen_epoch_if_newer(partition, committed.leader_epoch)
            if self._subscriptions.is_assigned(partition):
                logger.info("Starting %s at the committed offset %s", partition, committed)
                self._subscriptions.seek_unvalidated(
                    partition,
                    FetchPosition(
                        committed.offset,
                        committed.leader_epoch,
                        self._metadata.current_leader(partition),
                    ),
                )
        return True

    def maybe_auto_commit_async(self) -> None:
        if self._auto_commit_interval_ms is not None:
            self._next_auto_commit.reset(self._auto_commit_interval_ms)
            self._auto_commit_async()

    def _auto_commit_async(self) -> RequestFuture[None] | None:
        def done(offsets: Offsets, error: Exception | None) -> None:
            if isinstance(error, RetriableCommitFailedError):
                logger.debug("The automatic commit of %s failed: %s", dict(offsets), error)
                self._next_auto_commit.reset(self.config.retry_backoff_ms)
            elif error is not None:
                logger.warning("The automatic commit of %s failed: %s", dict(offsets), error)

        return self.committer.commit_async(self._subscriptions.all_consumed(), done)

    def _auto_commit_sync(self, deadline: Deadline) -> None:
        if self._auto_commit_interval_ms is None:
            return
        offsets = self._subscriptions.all_consumed()
        try:
            if not self.committer.commit_sync(offsets, deadline):
                logger.warning("The automatic commit of %s did not end in time", offsets)
        except WakeupError:
            raise
        except KafkaError as error:
            # Closing goes on; whoever takes over reads some records again.
            logger.warning("The automatic commit of %s failed: %s", offsets, error)


def _common_protocol(assignors: Sequence[ConsumerPartitionAssignor]) -> RebalanceProtocol:
    """The most that all of them support: a group may end up with any of them."""
    common = set(RebalanceProtocol)
    for assignor in assignors:
        common &= set(assignor.supported_protocols)
    if not common:
        raise ValueError("the assignors have no rebalance protocol in common")
    return max(common)


def _call(
    method: Callable[[Collection[TopicPartition]], None], partitions: frozenset[TopicPartition]
) -> Exception | None:
    """What the listener raised; a wakeup in it goes straight on."""
    try:
        method(partitions)
    except WakeupError:
        raise
    except Exception as error:
        logger.exception("A rebalance listener failed on %s", sorted(map(str, partitions)))
        return error
    return None


def _raise_listener_failure(failure: Exception | None) -> None:
    if failure is not None:
        if isinstance(failure, KafkaError):
            raise failure
        raise KafkaError(f"A rebalance listener failed: {failure}") from failure
