from uuid import UUID

import pytest

from kafkapy.clients.metadata import LeaderAndEpoch, Metadata
from kafkapy.common.errors import (
    Errors,
    InvalidTopicError,
    KafkaError,
    TopicAuthorizationError,
)
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node
from tests.unit.clients.metadata_responses import metadata_response, node

EXPIRE_MS = 10_000
BACKOFF_MS = 100
T0 = TopicPartition("t", 0)


@pytest.fixture
def metadata() -> Metadata:
    metadata = Metadata(
        refresh_backoff_ms=BACKOFF_MS, refresh_backoff_max_ms=1_000, metadata_expire_ms=EXPIRE_MS
    )
    metadata.bootstrap([("127.0.0.1", 9092), ("127.0.0.1", 9093)])
    return metadata


def update(metadata: Metadata, now_ms: int = 0, *, partial: bool = False, **described) -> None:
    metadata.update_with_current_request_version(
        metadata_response(**described), is_partial_update=partial, now_ms=now_ms
    )


def test_bootstrap_addresses_are_nodes_until_the_first_update(metadata: Metadata) -> None:
    cluster = metadata.fetch()

    assert [(n.id, n.port) for n in cluster.nodes] == [(-1, 9092), (-2, 9093)]
    assert cluster.is_bootstrap_configured
    assert metadata.time_to_next_update_ms(0) == 0

    update(metadata, topics={"t": 2}, brokers=2)

    cluster = metadata.fetch()
    assert cluster.nodes == (node(0), node(1))
    assert not cluster.is_bootstrap_configured
    assert cluster.leader_for(TopicPartition("t", 1)) == node(1)
    assert cluster.controller == node(0)
    assert cluster.cluster_id == "cluster"

    metadata.rebootstrap()

    assert [n.id for n in metadata.fetch().nodes] == [-1, -2]


def test_update_is_due_when_it_expires(metadata: Metadata) -> None:
    update(metadata, now_ms=1000, topics={"t": 1})

    assert metadata.time_to_next_update_ms(1000) == EXPIRE_MS
    assert metadata.time_to_next_update_ms(1000 + EXPIRE_MS) == 0


def test_requested_update_waits_the_backoff_after_the_last(metadata: Metadata) -> None:
    update(metadata, now_ms=1000, topics={"t": 1})
    metadata.request_update()

    assert 0 < metadata.time_to_next_update_ms(1000) <= BACKOFF_MS * 1.2
    assert metadata.time_to_next_update_ms(1000 + 2 * BACKOFF_MS) == 0


def test_failures_make_the_backoff_longer(metadata: Metadata) -> None:
    waits = []
    for _ in range(4):
        metadata.failed_update(0)
        waits.append(metadata.time_to_next_update_ms(0))

    assert waits == sorted(waits)
    assert waits[3] >= 0.8 * 8 * BACKOFF_MS


def test_responses_that_bring_nothing_new_make_the_backoff_longer(metadata: Metadata) -> None:
    for _ in range(4):
        update(metadata, topics={"t": 1})
        metadata.request_update(reset_equivalent_response_backoff=False)
    assert metadata.time_to_next_update_ms(0) > 2 * BACKOFF_MS

    metadata.request_update()

    assert metadata.time_to_next_update_ms(0) <= BACKOFF_MS * 1.2


def test_new_topics_are_asked_for_at_once(metadata: Metadata) -> None:
    update(metadata, now_ms=1000, topics={"t": 1})

    metadata.request_update_for_new_topics()

    assert metadata.time_to_next_update_ms(1000) == 0


def test_answer_to_an_older_request_does_not_cover_topics_wanted_since(metadata: Metadata) -> None:
    wanted = metadata.new_request_and_version(0)
    metadata.request_update_for_new_topics()

    metadata.update(
        metadata_response({"t": 1}),
        request_version=wanted.request_version,
        is_partial_update=False,
        now_ms=0,
    )

    assert metadata.update_requested


def test_older_leader_epoch_does_not_replace_a_newer(metadata: Metadata) -> None:
    update(metadata, topics={"t": 1}, brokers=2, leader_epoch=5, leaders={("t", 0): 1})

    update(metadata, topics={"t": 1}, brokers=2, leader_epoch=4, leaders={("t", 0): 0})

    assert metadata.current_leader(T0) == LeaderAndEpoch(node(1), 5)


def test_recreated_topic_starts_its_epochs_over(metadata: Metadata) -> None:
    update(metadata, topics={"t": 1}, leader_epoch=5, topic_ids={"t": UUID(int=7)})

    update(metadata, topics={"t": 1}, leader_epoch=0, topic_ids={"t": UUID(int=8)})

    assert metadata.last_seen_leader_epoch(T0) == 0
    assert metadata.fetch().topic_id("t") == UUID(int=8)
    assert metadata.fetch().topic_name(UUID(int=8)) == "t"


def test_epochs_of_old_brokers_are_not_trusted(metadata: Metadata) -> None:
    metadata.update(
        metadata_response({"t": 1}, leader_epoch=5),
        request_version=0,
        is_partial_update=False,
        now_ms=0,
        api_version=8,
    )

    assert metadata.last_seen_leader_epoch(T0) is None
    assert metadata.current_leader(T0) == LeaderAndEpoch(node(0), None)


def test_newer_epoch_seen_elsewhere_makes_the_leader_unknown(metadata: Metadata) -> None:
    assert not metadata.update_last_seen_epoch_if_newer(T0, 1)
    update(metadata, topics={"t": 1}, leader_epoch=3)

    assert not metadata.update_last_seen_epoch_if_newer(T0, 3)
    assert not metadata.update_requested
    assert metadata.update_last_seen_epoch_if_newer(T0, 4)

    assert metadata.update_requested
    assert metadata.current_leader(T0) == LeaderAndEpoch(None, 4)
    assert metadata.partition_metadata_if_current(T0) is None


def test_leader_told_by_another_response_is_taken(metadata: Metadata) -> None:
    update(metadata, topics={"t": 2}, leader_epoch=3)
    version = metadata.update_version
    news = Node(9, "127.0.0.1", 1009)

    updated = metadata.update_partition_leadership(
        {T0: (9, 4), TopicPartition("t", 1): (0, 3), TopicPartition("u", 0): (9, 1)}, [news]
    )

    assert updated == {T0}
    assert metadata.current_leader(T0) == LeaderAndEpoch(news, 4)
    assert metadata.fetch().leader_for(TopicPartition("t", 1)) == node(0)
    assert metadata.update_version == version


def test_partial_update_keeps_other_topics(metadata: Metadata) -> None:
    update(metadata, topics={"a": 1, "b": 1, "gone": 1})

    update(
        metadata,
        partial=True,
        topics={"b": 2},
        errors={"gone": Errors.UNKNOWN_TOPIC_OR_PARTITION},
    )

    assert metadata.fetch().topics == {"a", "b"}
    assert metadata.fetch().partition_count_for_topic("b") == 2
    assert metadata.fetch().partition_count_for_topic("gone") is None


def test_full_update_forgets_other_topics(metadata: Metadata) -> None:
    update(metadata, topics={"a": 1})

    update(metadata, topics={"b": 1})

    assert metadata.fetch().topics == {"b"}


def test_partition_without_a_leader_is_not_available_and_asked_for_again(
    metadata: Metadata,
) -> None:
    response = metadata_response({"t": 2})
    response.topics[0].partitions[1].leader_id = -1
    response.topics[0].partitions[1].error_code = Errors.LEADER_NOT_AVAILABLE.code

    metadata.update_with_current_request_version(response, is_partial_update=False, now_ms=0)

    cluster = metadata.fetch()
    assert [info.partition for info in cluster.partitions_for_topic("t")] == [0, 1]
    assert [info.partition for info in cluster.available_partitions_for_topic("t")] == [0]
    assert [info.partition for info in cluster.partitions_for_node(0)] == [0]
    assert cluster.leader_for(TopicPartition("t", 1)) is None
    assert metadata.update_requested


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (Errors.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationError),
        (Errors.INVALID_TOPIC_EXCEPTION, InvalidTopicError),
    ],
)
def test_errors_of_topics_are_raised_once(
    metadata: Metadata, error: Errors, raised: type[KafkaError]
) -> None:
    update(metadata, topics={"good": 1}, errors={"bad": error})
    metadata.maybe_raise_error_for_topic("good")
    metadata.maybe_raise_any_error()

    update(metadata, topics={"good": 1}, errors={"bad": error})
    with pytest.raises(raised, match="bad"):
        metadata.maybe_raise_any_error()
    metadata.maybe_raise_any_error()
    update(metadata, errors={"bad": error})
    with pytest.raises(raised, match="bad"):
        metadata.maybe_raise_error_for_topic("bad")


def test_fatal_error_is_raised_once(metadata: Metadata) -> None:
    metadata.fatal_error(KafkaError("fatal"))

    with pytest.raises(KafkaError, match="fatal"):
        metadata.maybe_raise_any_error()
    metadata.maybe_raise_any_error()


def test_replicas_on_unknown_brokers_have_no_address(metadata: Metadata) -> None:
    response = metadata_response({"t": 1})
    response.topics[0].partitions[0].replica_nodes = [0, 7]
    response.topics[0].partitions[0].offline_replicas = [7]

    metadata.update_with_current_request_version(response, is_partial_update=False, now_ms=0)

    info = metadata.fetch().partition(T0)
    assert info is not None
    assert info.offline_replicas == (Node(7, "", -1),)
    assert metadata.fetch().node_if_online(T0, 0) == node(0)
    assert metadata.fetch().node_if_online(T0, 7) is None


def test_closed_metadata_takes_no_update(metadata: Metadata) -> None:
    metadata.close()

    with pytest.raises(ValueError, match="closed"):
        update(metadata, topics={"t": 1})
