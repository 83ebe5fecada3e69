"""AdminClient: brokers, replicas and transactions."""

import uuid
from collections.abc import Callable, Iterator

import pytest

from kafkapy.clients.admin import (
    AbortTransactionSpec,
    AdminClient,
    ElectionType,
    FeatureUpdate,
    NewTopic,
    OffsetSpec,
    TopicPartitionReplica,
    TransactionState,
)
from kafkapy.clients.producer import KafkaProducer
from kafkapy.common.errors import (
    ElectionNotNeededError,
    InvalidProducerEpochError,
    InvalidReplicaAssignmentError,
    KafkaError,
    NoReassignmentInProgressError,
    ProducerFencedError,
    TransactionalIdNotFoundError,
    UnknownTopicOrPartitionError,
    UnsupportedVersionError,
)
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.types import TopicPartition
from tests.clients.admins import admin_client, require_api
from tests.compat.brokers import Broker

BROKER_ID = 0


@pytest.fixture(scope="module")
def admin(broker: Broker) -> Iterator[AdminClient]:
    with admin_client(broker) as admin:
        yield admin


@pytest.fixture
def partition(admin: AdminClient) -> TopicPartition:
    """The only one of a topic."""
    name = f"admin-{uuid.uuid4().hex}"
    admin.create_topics([NewTopic(name, 1, 1)])
    return TopicPartition(name, 0)


@pytest.fixture
def open_transaction(
    broker: Broker, partition: TopicPartition
) -> Iterator[tuple[str, KafkaProducer]]:
    """A transactional id, and its producer with one record in a transaction that is open."""
    transactional_id = f"admin-{uuid.uuid4().hex}"
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap, transactional_id=transactional_id, linger_ms=0
    )
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(partition.topic, b"value", partition=partition.partition).get(20)
    yield transactional_id, producer
    producer.close(0)


def test_cluster_is_described(admin: AdminClient, broker: Broker) -> None:
    cluster = admin.describe_cluster()

    (node,) = cluster.nodes
    assert cluster.cluster_id and cluster.controller == node
    assert (node.id, node.host, node.port) == (BROKER_ID, *broker.address)
    assert cluster.authorized_operations is None


def test_versions_of_every_broker_are_told(admin: AdminClient) -> None:
    versions = admin.api_versions()

    assert list(versions) == [BROKER_ID]
    assert versions[BROKER_ID].latest_usable_version(ApiKeys.METADATA) == 12
    assert admin.api_versions([BROKER_ID])[BROKER_ID].api_version(ApiKeys.PRODUCE) is not None


def test_features_are_described(admin: AdminClient) -> None:
    features = admin.describe_features()

    assert features.finalized_features == {}


def test_update_of_an_unknown_feature_fails(admin: AdminClient) -> None:
    require_api(admin, ApiKeys.UPDATE_FEATURES)

    with pytest.raises(KafkaError):
        admin.update_features({"no-such-feature": FeatureUpdate(1)})


def test_log_directories_hold_the_replicas(
    admin: AdminClient, partition: TopicPartition, produce: Callable[..., None]
) -> None:
    produce(partition.topic, b"x" * 1000)
    replica = TopicPartitionReplica(*partition, BROKER_ID)

    ((path, log_dir),) = admin.describe_log_dirs()[BROKER_ID].items()
    info = admin.describe_replica_log_dirs([replica])[replica]

    assert log_dir.error is None
    assert log_dir.replica_infos[partition].size > 1000
    assert not log_dir.replica_infos[partition].is_future
    assert log_dir.total_bytes > log_dir.usable_bytes > 0
    assert (info.current_log_dir, info.future_log_dir) == (path, None)


def test_api_that_the_broker_lacks_is_named(admin: AdminClient) -> None:
    lacking = ApiKeys.DESCRIBE_USER_SCRAM_CREDENTIALS
    if admin.api_versions()[BROKER_ID].api_version(lacking) is not None:
        pytest.skip("the broker has it")

    with pytest.raises(UnsupportedVersionError, match="DescribeUserScramCredentials"):
        admin.describe_user_scram_credentials(["somebody"])


def test_election_that_is_not_needed(admin: AdminClient, partition: TopicPartition) -> None:
    require_api(admin, ApiKeys.ELECT_LEADERS)
    unknown = TopicPartition("admin-no-such", 0)

    elected = admin.elect_leaders(ElectionType.PREFERRED, [partition, unknown], raise_errors=False)

    assert isinstance(elected.errors[partition], ElectionNotNeededError)
    assert isinstance(elected.errors[unknown], UnknownTopicOrPartitionError)
    assert partition not in admin.elect_leaders(ElectionType.PREFERRED)
    with pytest.raises(ElectionNotNeededError):
        admin.elect_leaders(ElectionType.UNCLEAN, [partition])


def test_reassignments_are_started_and_called_off(
    admin: AdminClient, partition: TopicPartition
) -> None:
    require_api(admin, ApiKeys.ALTER_PARTITION_REASSIGNMENTS)

    admin.alter_partition_reassignments({partition: [BROKER_ID]})

    assert admin.list_partition_reassignments([partition]) == {}
    assert admin.list_partition_reassignments() == {}
    with pytest.raises(NoReassignmentInProgressError):
        admin.alter_partition_reassignments({partition: None})
    with pytest.raises(InvalidReplicaAssignmentError):
        admin.alter_partition_reassignments({partition: [BROKER_ID, 17]})


def test_replica_is_moved_within_its_broker(admin: AdminClient, partition: TopicPartition) -> None:
    require_api(admin, ApiKeys.ALTER_REPLICA_LOG_DIRS)
    here = TopicPartitionReplica(*partition, BROKER_ID)
    path = admin.describe_replica_log_dirs([here])[here].current_log_dir
    assert path is not None

    admin.alter_replica_log_dirs({here: path})

    assert admin.describe_replica_log_dirs([here])[here].current_log_dir == path
    with pytest.raises(KafkaError, match=str(here)):
        admin.alter_replica_log_dirs({here: "/no/such/directory"})


def test_open_transaction_is_shown(
    admin: AdminClient, partition: TopicPartition, open_transaction: tuple[str, KafkaProducer]
) -> None:
    transactional_id, _ = open_transaction

    description = admin.describe_transactions([transactional_id])[transactional_id]
    listings = admin.list_transactions(
        states=[TransactionState.ONGOING], producer_ids=[description.producer_id]
    )
    (state,) = admin.describe_producers([partition])[partition]
    by_broker = admin.describe_producers([partition], broker_id=BROKER_ID)

    assert description.state is TransactionState.ONGOING
    assert description.coordinator_id == BROKER_ID
    assert description.topic_partitions == {partition}
    assert description.transaction_start_time_ms is not None
    assert [listing.transactional_id for listing in listings] == [transactional_id]
    assert listings[0].coordinator_id == BROKER_ID
    assert state.producer_id == description.producer_id
    assert state.current_transaction_start_offset == 0 and state.last_sequence == 0
    assert by_broker[partition] == (state,)


def test_transactions_are_listed_by_duration(
    admin: AdminClient, open_transaction: tuple[str, KafkaProducer]
) -> None:
    transactional_id, _ = open_transaction

    def listed(min_duration_ms: int) -> set[str]:
        listings = admin.list_transactions(min_duration_ms=min_duration_ms)
        return {listing.transactional_id for listing in listings}

    assert transactional_id in listed(0)
    assert transactional_id not in listed(600_000)


def test_unknown_transactional_id(admin: AdminClient) -> None:
    with pytest.raises(TransactionalIdNotFoundError, match="admin-no-such"):
        admin.describe_transactions(["admin-no-such"])


def test_hanging_transaction_is_aborted_in_its_partition(
    admin: AdminClient, partition: TopicPartition, open_transaction: tuple[str, KafkaProducer]
) -> None:
    (state,) = admin.describe_producers([partition])[partition]
    spec = AbortTransactionSpec(partition, state.producer_id, state.producer_epoch, 0)

    admin.abort_transaction(spec)

    (ended,) = admin.describe_producers([partition])[partition]
    assert ended.current_transaction_start_offset is None
    assert admin.list_offsets({partition: OffsetSpec.LATEST})[partition].offset == 2


def test_fenced_producer_is_shut_out(
    admin: AdminClient, open_transaction: tuple[str, KafkaProducer]
) -> None:
    transactional_id, producer = open_transaction
    before = admin.describe_transactions([transactional_id])[transactional_id]

    fenced = admin.fence_producers([transactional_id])[transactional_id]

    assert fenced.producer_id == before.producer_id
    assert fenced.epoch > before.producer_epoch
    with pytest.raises((ProducerFencedError, InvalidProducerEpochError)):
        producer.commit_transaction()
