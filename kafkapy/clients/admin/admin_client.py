"""The admin client, as programs use it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self
from uuid import UUID

from kafkapy.clients.admin.admin_calls import AdminCalls
from kafkapy.clients.admin.admin_client_config import AdminClientConfig
from kafkapy.clients.admin.apis.acls import (
    CreateAclsHandler,
    DeleteAclsHandler,
    DescribeAclsHandler,
)
from kafkapy.clients.admin.apis.cluster import (
    AlterReplicaLogDirsHandler,
    ApiVersionsHandler,
    DescribeClusterHandler,
    DescribeFeaturesHandler,
    DescribeLogDirsHandler,
    DescribeReplicaLogDirsHandler,
    UpdateFeaturesHandler,
)
from kafkapy.clients.admin.apis.configs import (
    AlterConfigsHandler,
    DescribeConfigsHandler,
    IncrementalAlterConfigsHandler,
)
from kafkapy.clients.admin.apis.delegation_tokens import (
    CreateDelegationTokenHandler,
    DescribeDelegationTokenHandler,
    ExpireDelegationTokenHandler,
    RenewDelegationTokenHandler,
)
from kafkapy.clients.admin.apis.group_offsets import (
    AlterConsumerGroupOffsetsHandler,
    CommittedOffsets,
    DeleteConsumerGroupOffsetsHandler,
    ListConsumerGroupOffsetsHandler,
)
from kafkapy.clients.admin.apis.groups import (
    DeleteConsumerGroupsHandler,
    DescribeClassicGroupsHandler,
    DescribeConsumerGroupsHandler,
    ListConsumerGroupsHandler,
    RemoveMembersHandler,
)
from kafkapy.clients.admin.apis.offsets import DeleteRecordsHandler, ListOffsetsHandler
from kafkapy.clients.admin.apis.quotas import (
    AlterClientQuotasHandler,
    DescribeClientQuotasHandler,
)
from kafkapy.clients.admin.apis.replicas import (
    AlterPartitionReassignmentsHandler,
    ElectLeadersHandler,
    ListPartitionReassignmentsHandler,
)
from kafkapy.clients.admin.apis.scram import (
    AlterUserScramCredentialsHandler,
    DescribeUserScramCredentialsHandler,
)
from kafkapy.clients.admin.apis.topics import (
    CreatePartitionsHandler,
    CreateTopicsHandler,
    DeleteTopicsHandler,
    DescribeTopicsHandler,
    ListTopicsHandler,
)
from kafkapy.clients.admin.apis.transactions import (
    AbortTransactionHandler,
    DescribeProducersHandler,
    DescribeTransactionsHandler,
    EndTransactionsHandler,
    FenceProducersHandler,
    ListTransactionsHandler,
)
from kafkapy.clients.admin.client_quota import (
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
)
from kafkapy.clients.admin.cluster_description import (
    ClusterDescription,
    FeatureMetadata,
    FeatureUpdate,
    LogDirDescription,
    ReplicaLogDirInfo,
    TopicPartitionReplica,
)
from kafkapy.clients.admin.config_entry import AlterConfigOp, ConfigEntry, ConfigResource
from kafkapy.clients.admin.consumer_group_description import (
    ConsumerGroupDescription,
    ConsumerGroupListing,
    ConsumerGroupState,
    GroupType,
    MemberToRemove,
)
from kafkapy.clients.admin.delegation_token import DelegationToken
from kafkapy.clients.admin.new_topic import BROKER_DEFAULT, NewPartitions, NewTopic
from kafkapy.clients.admin.offset_spec import IsolationLevel, ListOffsetsResultInfo
from kafkapy.clients.admin.partition_reassignment import PartitionReassignment
from kafkapy.clients.admin.results import Results
from kafkapy.clients.admin.topic_description import (
    TopicDescription,
    TopicListing,
    TopicMetadataAndConfig,
)
from kafkapy.clients.admin.transaction_description import (
    AbortTransactionSpec,
    ProducerIdAndEpoch,
    ProducerState,
    TransactionDescription,
    TransactionListing,
    TransactionState,
)
from kafkapy.clients.admin.user_scram_credential import (
    ScramCredentialInfo,
    UserScramCredentialAlteration,
)
from kafkapy.clients.api_versions import NodeApiVersions
from kafkapy.clients.client_config import parse_client_config
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata
from kafkapy.clients.producer.prepared_transaction import PreparedTransaction
from kafkapy.common.election_type import ElectionType
from kafkapy.common.errors import GroupIdNotFoundError, UnsupportedVersionError
from kafkapy.common.security.acl import AclBinding, AclBindingFilter
from kafkapy.common.security.kafka_principal import KafkaPrincipal
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
        deadline = self._calls.deadline(timeout_ms)
        newer = DescribeConsumerGroupsHandler(
            include_authorized_operations=include_authorized_operations
        )
        classic = DescribeClassicGroupsHandler(
            include_authorized_operations=include_authorized_operations
        )
        results = self._calls.run(newer, group_ids, deadline, raise_errors=False)
        others = [
            group_id
            for group_id, error in results.errors.items()
            if isinstance(error, GroupIdNotFoundError | UnsupportedVersionError)
        ]
        results = results.replaced_by(
            self._calls.run(classic, others, deadline, raise_errors=False)
        )
        if raise_errors:
            results.raise_first_error()
        return results

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
            described = self.describe_consumer_groups([group_id], timeout_ms=deadline.remaining_ms)
            members = [
                MemberToRemove(member.group_instance_id, member.member_id)
                for member in described[group_id].members
            ]
        members = tuple(members)
        handler = RemoveMembersHandler(members, reason=reason)
        return self._calls.run_parts(
            handler, group_id, members, timeout=deadline, raise_errors=raise_errors
        )

    # Transactions

    def describe_producers(
        self,
        partitions: Iterable[TopicPartition],
        *,
        broker_id: int | None = None,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[TopicPartition, tuple[ProducerState, ...]]:
        """The active producers, as the leaders see them, or the replicas of one broker."""
        handler = DescribeProducersHandler(broker_id)
        return self._calls.run(handler, partitions, timeout_ms, raise_errors=raise_errors)

    def describe_transactions(
        self,
        transactional_ids: Iterable[str],
        *,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[str, TransactionDescription]:
        handler = DescribeTransactionsHandler()
        return self._calls.run(handler, transactional_ids, timeout_ms, raise_errors=raise_errors)

    def list_transactions(
        self,
        *,
        states: Collection[TransactionState] = (),
        producer_ids: Collection[int] = (),
        min_duration_ms: int | None = None,
        timeout_ms: int | None = None,
    ) -> list[TransactionListing]:
        """Those of all brokers, by their ids; those that match, if anything is asked for."""
        deadline = self._calls.deadline(timeout_ms)
        handler = ListTransactionsHandler(
            states=states, producer_ids=producer_ids, min_duration_ms=min_duration_ms
        )
        by_broker = self._calls.run(handler, self._calls.broker_ids(deadline), deadline)
        listings = (listing for listed in by_broker.values() for listing in listed)
        return sorted(listings, key=lambda listing: listing.transactional_id)

    def abort_transaction(
        self, spec: AbortTransactionSpec, *, timeout_ms: int | None = None
    ) -> None:
        """End a transaction that hangs in one partition, behind its coordinator's back."""
        self._calls.run(AbortTransactionHandler(spec), [spec.topic_partition], timeout_ms)

    def end_transactions(
        self,
        transactions: Iterable[PreparedTransaction],
        *,
        is_commit: bool,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[str, None]:
        """Commit or abort what producers have prepared; a second time does no harm."""
        by_id = {transaction.transactional_id: transaction for transaction in transactions}
        handler = EndTransactionsHandler(by_id, is_commit=is_commit)
        return self._calls.run(handler, by_id, timeout_ms, raise_errors=raise_errors)

    def fence_producers(
        self,
        transactional_ids: Iterable[str],
        *,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[str, ProducerIdAndEpoch]:
        """Shut out the present producers of the ids, aborting what they have open."""
        handler = FenceProducersHandler()
        return self._calls.run(handler, transactional_ids, timeout_ms, raise_errors=raise_errors)

    # Replicas

    def elect_leaders(
        self,
        election_type: ElectionType,
        topic_partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[TopicPartition, None]:
        """Elect leaders of the partitions, by default of all.

        One that needs no election is an ElectionNotNeededError if it was asked for, and left out
        otherwise.
        """
        handler = ElectLeadersHandler(election_type, topic_partitions)
        elected = self._calls.run_one(handler, timeout_ms)
        if raise_errors:
            elected.raise_first_error()
        return elected

    def alter_partition_reassignments(
        self,
        reassignments: Mapping[TopicPartition, Sequence[int] | None],
        *,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[TopicPartition, None]:
        """Start to move partitions to these brokers; None calls a move off."""
        handler = AlterPartitionReassignmentsHandler(reassignments)
        return self._calls.run(handler, reassignments, timeout_ms, raise_errors=raise_errors)

    def list_partition_reassignments(
        self,
        topic_partitions: Iterable[TopicPartition] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, PartitionReassignment]:
        """The moves under way, of these partitions or of all."""
        return self._calls.run_one(ListPartitionReassignmentsHandler(topic_partitions), timeout_ms)

    def describe_log_dirs(
        self,
        brokers: Iterable[int] | None = None,
        *,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[int, dict[str, LogDirDescription]]:
        """The log directories of the brokers, by default of all, by broker and path."""
        deadline = self._calls.deadline(timeout_ms)
        wanted = self._calls.broker_ids(deadline) if brokers is None else brokers
        handler = DescribeLogDirsHandler()
        return self._calls.run(handler, wanted, deadline, raise_errors=raise_errors)

    def describe_replica_log_dirs(
        self,
        replicas: Iterable[TopicPartitionReplica],
        *,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[TopicPartitionReplica, ReplicaLogDirInfo]:
        handler = DescribeReplicaLogDirsHandler()
        return self._calls.run(handler, replicas, timeout_ms, raise_errors=raise_errors)

    def alter_replica_log_dirs(
        self,
        replica_assignments: Mapping[TopicPartitionReplica, str],
        *,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[TopicPartitionReplica, None]:
        """Move replicas to these log directories of their brokers."""
        handler = AlterReplicaLogDirsHandler(replica_assignments)
        return self._calls.run(handler, replica_assignments, timeout_ms, raise_errors=raise_errors)

    # Brokers

    def describe_cluster(
        self, *, include_authorized_operations: bool = False, timeout_ms: int | None = None
    ) -> ClusterDescription:
        handler = DescribeClusterHandler(
            include_authorized_operations=include_authorized_operations
        )
        return self._calls.run_one(handler, timeout_ms)

    def api_versions(
        self,
        brokers: Iterable[int] | None = None,
        *,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[int, NodeApiVersions]:
        """What the brokers, by default all, support."""
        deadline = self._calls.deadline(timeout_ms)
        wanted = self._calls.broker_ids(deadline) if brokers is None else brokers
        return self._calls.run(ApiVersionsHandler(), wanted, deadline, raise_errors=raise_errors)

    def describe_features(self, *, timeout_ms: int | None = None) -> FeatureMetadata:
        return self._calls.run_one(DescribeFeaturesHandler(), timeout_ms)

    def update_features(
        self,
        feature_updates: Mapping[str, FeatureUpdate],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[str, None]:
        handler = UpdateFeaturesHandler(feature_updates, validate_only=validate_only)
        return self._calls.run(handler, feature_updates, timeout_ms, raise_errors=raise_errors)

    # Access rules, quotas and credentials

    def describe_acls(
        self, acl_filter: AclBindingFilter, *, timeout_ms: int | None = None
    ) -> list[AclBinding]:
        return self._calls.run_one(DescribeAclsHandler(acl_filter), timeout_ms)

    def create_acls(
        self,
        acls: Iterable[AclBinding],
        *,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[AclBinding, None]:
        return self._calls.run(CreateAclsHandler(), acls, timeout_ms, raise_errors=raise_errors)

    def delete_acls(
        self,
        acl_filters: Iterable[AclBindingFilter],
        *,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[AclBindingFilter, tuple[AclBinding, ...]]:
        """Remove what matches; the values are what was removed."""
        handler = DeleteAclsHandler()
        return self._calls.run(handler, acl_filters, timeout_ms, raise_errors=raise_errors)

    def describe_client_quotas(
        self, quota_filter: ClientQuotaFilter, *, timeout_ms: int | None = None
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        return self._calls.run_one(DescribeClientQuotasHandler(quota_filter), timeout_ms)

    def alter_client_quotas(
        self,
        alterations: Iterable[ClientQuotaAlteration],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[ClientQuotaEntity, None]:
        by_entity = {alteration.entity: alteration.ops for alteration in alterations}
        handler = AlterClientQuotasHandler(by_entity, validate_only=validate_only)
        return self._calls.run(handler, by_entity, timeout_ms, raise_errors=raise_errors)

    def describe_user_scram_credentials(
        self,
        users: Iterable[str] | None = None,
        *,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[str, tuple[ScramCredentialInfo, ...]]:
        """The mechanisms for which the users, by default all, have credentials."""
        handler = DescribeUserScramCredentialsHandler(users)
        described = self._calls.run_one(handler, timeout_ms)
        if raise_errors:
            described.raise_first_error()
        return described

    def alter_user_scram_credentials(
        self,
        alterations: Iterable[UserScramCredentialAlteration],
        *,
        timeout_ms: int | None = None,
        raise_errors: bool = True,
    ) -> Results[str, None]:
        """Set and delete credentials; the results are by user."""
        handler = AlterUserScramCredentialsHandler(alterations)
        return self._calls.run(handler, handler.users, timeout_ms, raise_errors=raise_errors)

    def create_delegation_token(
        self,
        *,
        owner: KafkaPrincipal | None = None,
        renewers: Iterable[KafkaPrincipal] = (),
        max_lifetime_ms: int = BROKER_DEFAULT,
        timeout_ms: int | None = None,
    ) -> DelegationToken:
        """For the owner, by default oneself; -1 is the broker's limit of its life."""
        handler = CreateDelegationTokenHandler(
            owner=owner, renewers=renewers, max_lifetime_ms=max_lifetime_ms
        )
        return self._calls.run_one(handler, timeout_ms)

    def renew_delegation_token(
        self,
        hmac: bytes,
        *,
        renew_period_ms: int = BROKER_DEFAULT,
        timeout_ms: int | None = None,
    ) -> int:
        """Let it live longer; when it expires now."""
        return self._calls.run_one(RenewDelegationTokenHandler(hmac, renew_period_ms), timeout_ms)

    def expire_delegation_token(
        self, hmac: bytes, *, expiry_period_ms: int = -1, timeout_ms: int | None = None
    ) -> int:
        """Let it expire after so long, below 0 at once; when it expires now."""
        return self._calls.run_one(ExpireDelegationTokenHandler(hmac, expiry_period_ms), timeout_ms)

    def describe_delegation_token(
        self,
        owners: Iterable[KafkaPrincipal] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> list[DelegationToken]:
        """The tokens of the owners, by default all that one may see."""
        return self._calls.run_one(DescribeDelegationTokenHandler(owners), timeout_ms)

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
