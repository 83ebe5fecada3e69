"""The admin client, as programs use it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from kafkapy.clients.admin.admin_calls import AdminCalls
from kafkapy.clients.admin.admin_client_config import AdminClientConfig
from kafkapy.clients.admin.apis.configs import (
    AlterConfigsHandler,
    DescribeConfigsHandler,
    IncrementalAlterConfigsHandler,
)
from kafkapy.clients.admin.apis.group_offsets import (
    AlterConsumerGroupOffsetsHandler,
    CommittedOffsets,
    DeleteConsumerGroupOffsetsHandler,
    ListConsumerGroupOffsetsHandler,
)
from kafkapy.clients.admin.apis.groups import (
    DeleteConsumerGroupsHandler,
    DescribeConsumerGroupsHandler,
    ListConsumerGroupsHandler,
    RemoveMembersHandler,
)
from kafkapy.clients.admin.apis.offsets import DeleteRecordsHandler, ListOffsetsHandler
from kafkapy.clients.admin.apis.topics import (
    CreatePartitionsHandler,
    CreateTopicsHandler,
    DeleteTopicsHandler,
    DescribeTopicsHandler,
    ListTopicsHandler,
)
from kafkapy.clients.admin.config_entry import AlterConfigOp, ConfigEntry, ConfigResource
from kafkapy.clients.admin.consumer_group_description import (
    ConsumerGroupDescription,
    ConsumerGroupListing,
    ConsumerGroupState,
    GroupType,
    MemberToRemove,
)
from kafkapy.clients.admin.new_topic import NewPartitions, NewTopic
from kafkapy.clients.admin.offset_spec import IsolationLevel, ListOffsetsResultInfo
from kafkapy.clients.admin.results import Results
from kafkapy.clients.admin.topic_description import (
    TopicDescription,
    TopicListing,
    TopicMetadataAndConfig,
)
from kafkapy.clients.client_config import parse_client_config
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata
from kafkapy.common.types import TopicPartition
from kafkapy.utils.time import SystemTime, Time

_DEFAULT_REMOVAL_REASON = "removed by an admin client"


class AdminClient:
    """Manages topics, settings, groups, transactions, access rules and brokers. Thread-safe.

        with AdminClient(bootstrap_servers="localhost:9092") as admin:
            admin.create_topics([NewTopic("orders", num_partitions=3)])

    A call blocks until it is done, retrying what may succeed, for at most `timeout_ms` (by default
    default.api.timeout.ms). A call about several things returns Results, a dict of each to its
    value, and raises the first error when some failed, after all have been tried; with
    `raise_errors=False` it raises none of them: `results.errors` has them, and so has
    `results[key]`. An API that the broker lacks is an UnsupportedVersionError.

    Ports: org.apache.kafka.clients.admin.KafkaAdminClient
    """

    def __init__(
        self,
        *,
        properties: Mapping[str, Any] | None = None,
        time: Time | None = None,
        **settings: Any,
    ) -> None:
        """Settings are those of AdminClientConfig, as keywords or dotted `properties`."""
        config = parse_client_config(AdminClientConfig, properties, settings)
        # constant after construction
        self.config = config
        self._calls = AdminCalls.connect(config, time or SystemTime())

    # Topics

    def create_topics(
        self,
        new_topics: Iterable[NewTopic],
        *,
        timeout_ms: int | None = None,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
        raise_errors: bool = True,
    ) -> Results[str, TopicMetadataAndConfig]:
        """Create the topics; those that are right are created also when others are not."""
        topics = {topic.name: topic for topic in new_topics}
        handler = CreateTopicsHandler(
            topics,
            validate_only=validate_only,
            retry_on_quota_violation=retry_on_quota_violation,
        )
        return self._calls.run(handler, topics, timeout_ms, raise_errors=raise_errors)

    def delete_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        timeout_ms: int | None = None,
        retry_on_quota_violation: bool = True,
        raise_errors: bool = True,
    ) -> Results[str | UUID, None]:
        """By names or ids."""
        handler = DeleteTopicsHandler(retry_on_quota_violation=retry_on_quota_violation)
        return self._calls.run(handler, topics, timeout_ms, raise_errors=raise_errors)

    def describe_topics(
        self,
        topics: Iterable[str | UUID],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[str | UUID, TopicDescription]:
        """By names or ids."""
        handler = DescribeTopicsHandler(include_authorized_operations=include_authorized_operations)
        return self._calls.run(handler, topics, timeout_ms, raise_errors=raise_errors)

    def list_topics(
        self, *, list_internal: bool = False, timeout_ms: int | None = None
    ) -> dict[str, TopicListing]:
        return self._calls.run_one(ListTopicsHandler(list_internal=list_internal), timeout_ms)

    def create_partitions(
        self,
        topic_partitions: Mapping[str, NewPartitions | int],
        *,
        timeout_ms: int | None = None,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
        raise_errors: bool = True,
    ) -> Results[str, None]:
        """Let each topic have so many partitions in all."""
        wanted = {
            topic: NewPartitions(count) if isinstance(count, int) else count
            for topic, count in topic_partitions.items()
        }
        handler = CreatePartitionsHandler(
            wanted,
            validate_only=validate_only,
            retry_on_quota_violation=retry_on_quota_violation,
        )
        return self._calls.run(handler, wanted, timeout_ms, raise_errors=raise_errors)

    # Records and offsets of partitions

    def delete_records(
        self,
        records_to_delete: Mapping[TopicPartition, int],
        *,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[TopicPartition, int]:
        """Delete what is before each offset, all for -1; the values are the first offsets left."""
        handler = DeleteRecordsHandler(records_to_delete)
        return self._calls.run(handler, records_to_delete, timeout_ms, raise_errors=raise_errors)

    def list_offsets(
        self,
        topic_partition_specs: Mapping[TopicPartition, int],
        *,
        isolation_level: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[TopicPartition, ListOffsetsResultInfo]:
        """For each partition an OffsetSpec, or a time in ms for the first record at or after it."""
        handler = ListOffsetsHandler(topic_partition_specs, isolation_level=isolation_level)
        return self._calls.run(
            handler, topic_partition_specs, timeout_ms, raise_errors=raise_errors
        )

    # Settings

    def describe_configs(
        self,
        config_resources: Iterable[ConfigResource],
        *,
        include_synonyms: bool = False,
        include_documentation: bool = False,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[ConfigResource, dict[str, ConfigEntry]]:
        handler = DescribeConfigsHandler(
            include_synonyms=include_synonyms, include_documentation=include_documentation
        )
        return self._calls.run(handler, config_resources, timeout_ms, raise_errors=raise_errors)

    def incremental_alter_configs(
        self,
        configs: Mapping[ConfigResource, Iterable[AlterConfigOp]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[ConfigResource, None]:
        """Change the settings named and no others."""
        handler = IncrementalAlterConfigsHandler(configs, validate_only=validate_only)
        return self._calls.run(handler, configs, timeout_ms, raise_errors=raise_errors)

    def alter_configs(
        self,
        configs: Mapping[ConfigResource, Mapping[str, str | None]],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[ConfigResource, None]:
        """Replace all settings: those not named go back to their defaults."""
        handler = AlterConfigsHandler(configs, validate_only=validate_only)
        return self._calls.run(handler, configs, timeout_ms, raise_errors=raise_errors)

    # Consumer groups

    def list_consumer_groups(
        self,
        *,
        states: Collection[ConsumerGroupState] = (),
        group_types: Collection[GroupType] = (),
        timeout_ms: int | None = None,
    ) -> list[ConsumerGroupListing]:
        """Those of all brokers, by their ids; in these states and of these types, if any."""
        deadline = self._calls.deadline(timeout_ms)
        handler = ListConsumerGroupsHandler(states, group_types)
        by_broker = self._calls.run(handler, self._calls.broker_ids(deadline), deadline)
        # While a coordinator moves two brokers may list a group.
        groups = {group.group_id: group for listed in by_broker.values() for group in listed}
        return [groups[group_id] for group_id in sorted(groups)]

    def describe_consumer_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[str, ConsumerGroupDescription]:
        """A group that does not exist is described as dead, by brokers before Kafka 4."""
        handler = DescribeConsumerGroupsHandler(
            include_authorized_operations=include_authorized_operations
        )
        return self._calls.run(handler, group_ids, timeout_ms, raise_errors=raise_errors)

    def delete_consumer_groups(
        self,
        group_ids: Iterable[str],
        *,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[str, None]:
        """Delete groups that have no members, with their offsets."""
        handler = DeleteConsumerGroupsHandler()
        return self._calls.run(handler, group_ids, timeout_ms, raise_errors=raise_errors)

    def list_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> CommittedOffsets:
        """The committed offsets of a group: all, or those of the partitions (None: it has none)."""
        groups = self.list_consumer_groups_offsets(
            {group_id: partitions}, require_stable=require_stable, timeout_ms=timeout_ms
        )
        return groups[group_id]

    def list_consumer_groups_offsets(
        self,
        groups: Mapping[str, Iterable[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[str, CommittedOffsets]:
        """As list_consumer_group_offsets, of many groups at once."""
        handler = ListConsumerGroupOffsetsHandler(groups, require_stable=require_stable)
        return self._calls.run(handler, groups, timeout_ms, raise_errors=raise_errors)

    def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        *,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[TopicPartition, None]:
        """Commit offsets of a group without members."""
        handler = AlterConsumerGroupOffsetsHandler(offsets)
        return self._calls.run_parts(
            handler, group_id, offsets, timeout=timeout_ms, raise_errors=raise_errors
        )

    def delete_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        *,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[TopicPartition, None]:
        """Forget offsets of partitions whose topics no member of the group subscribes to."""
        partitions = tuple(partitions)
        handler = DeleteConsumerGroupOffsetsHandler(partitions)
        return self._calls.run_parts(
            handler, group_id, partitions, timeout=timeout_ms, raise_errors=raise_errors
        )

    def remove_members_from_consumer_group(
        self,
        group_id: str,
        members: Iterable[MemberToRemove] | None = None,
        *,
        reason: str = _DEFAULT_REMOVAL_REASON,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[MemberToRemove, None]:
        """Make members leave; without `members` all of them."""
        deadline = self._calls.deadline(timeout_ms)
        if members is None:
            described = DescribeConsumerGroupsHandler(include_authorized_operations=False)
            group = self._calls.run(described, [group_id], deadline)[group_id]
            members = [
                MemberToRemove(member.group_instance_id, member.member_id)
                for member in group.members
            ]
        members = tuple(members)
        handler = RemoveMembersHandler(members, reason=reason)
        return self._calls.run_parts(
            handler, group_id, members, timeout=deadline, raise_errors=raise_errors
        )

    # The client itself

    def close(self, timeout_ms: int | None = None) -> None:
        """Wait for calls of other threads, at most so long, then end them and the connections."""
        self._calls.close(timeout_ms)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
