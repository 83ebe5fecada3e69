from uuid import UUID

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.update_metadata import UpdateMetadataRequest
from kafkapy.common.types import ZERO_UUID, TopicPartition
from kafkapy.metadata.broker import NO_NODE, BrokerMetadata, Node
from kafkapy.metadata.leader_and_isr import LEADER_DURING_DELETE
from kafkapy.metadata.metadata_cache import CurrentLeader, MetadataCache

CLIENT, INTERNAL = "CLIENT", "INTERNAL"
ID_T, ID_U = UUID(int=10), UUID(int=11)
State = UpdateMetadataRequest.UpdateMetadataPartitionState


def partition(
    index: int = 0,
    leader: int = 0,
    *,
    replicas: tuple[int, ...] = (0, 1),
    isr: tuple[int, ...] = (0, 1),
    offline: tuple[int, ...] = (),
) -> State:
    return State(
        partition_index=index,
        leader=leader,
        leader_epoch=4,
        replicas=list(replicas),
        isr=list(isr),
        offline_replicas=list(offline),
    )


def topic(
    name: str, topic_id: UUID, *states: State
) -> UpdateMetadataRequest.UpdateMetadataTopicState:
    return UpdateMetadataRequest.UpdateMetadataTopicState(
        topic_name=name, topic_id=topic_id, partition_states=list(states)
    )


def broker(
    broker_id: int, listeners: tuple[str, ...] = (CLIENT, INTERNAL)
) -> UpdateMetadataRequest.UpdateMetadataBroker:
    return UpdateMetadataRequest.UpdateMetadataBroker(
        id=broker_id,
        endpoints=[
            UpdateMetadataRequest.UpdateMetadataEndpoint(
                listener=name, host=f"{name.lower()}{broker_id}", port=9092, security_protocol=0
            )
            for name in listeners
        ],
        rack=f"r{broker_id}",
    )


def request(
    *topics: UpdateMetadataRequest.UpdateMetadataTopicState,
    brokers: tuple[UpdateMetadataRequest.UpdateMetadataBroker, ...] = (broker(0), broker(1)),
    controller_id: int = 0,
) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(
        controller_id=controller_id, topic_states=list(topics), live_brokers=list(brokers)
    )


@pytest.fixture
def cache() -> MetadataCache:
    return MetadataCache(0)


def test_empty_cache_knows_nothing(cache: MetadataCache) -> None:
    assert cache.all_topics() == set()
    assert cache.controller_id is None
    assert cache.get_partition_info("t", 0) is None
    assert cache.num_partitions("t") is None
    assert cache.get_topic_id("t") == ZERO_UUID
    assert cache.get_topic_metadata(["t"], CLIENT) == []


class TestUpdate:
    def test_topics_are_known_by_name_and_id(self, cache: MetadataCache) -> None:
        cache.update_metadata(1, request(topic("t", ID_T, partition(1), partition(0))))

        assert cache.contains_topic("t") and cache.contains(TopicPartition("t", 1))
        assert not cache.contains(TopicPartition("t", 2))
        assert cache.all_partitions() == {TopicPartition("t", 0), TopicPartition("t", 1)}
        assert cache.num_partitions("t") == 2
        assert cache.get_topic_id("t") == ID_T
        assert cache.get_topic_name(ID_T) == "t"
        assert cache.topic_id_info() == ({"t": ID_T}, {ID_T: "t"})

    def test_what_is_not_named_stays(self, cache: MetadataCache) -> None:
        cache.update_metadata(1, request(topic("t", ID_T, partition(0), partition(1))))

        cache.update_metadata(2, request(topic("t", ID_T, partition(1, leader=1))))
        cache.update_metadata(3, request(topic("u", ID_U, partition(0))))
        cache.update_metadata(4, request())

        assert cache.all_topics() == {"t", "u"}
        first, second = cache.get_partition_info("t", 0), cache.get_partition_info("t", 1)
        assert first is not None and first.leader == 0
        assert second is not None and second.leader == 1

    def test_brokers_and_controller_are_those_of_the_last_request(
        self, cache: MetadataCache
    ) -> None:
        cache.update_metadata(1, request())

        cache.update_metadata(2, request(brokers=(broker(1),), controller_id=1))

        assert cache.controller_id == 1
        assert cache.get_alive_brokers() == [BrokerMetadata(1, "r1")]
        assert not cache.has_alive_broker(0)
        cache.update_metadata(3, request(controller_id=-1))
        assert cache.controller_id is None

    def test_deleted_partitions_are_returned_and_forgotten(self, cache: MetadataCache) -> None:
        cache.update_metadata(1, request(topic("t", ID_T, partition(0), partition(1))))

        deleted = cache.update_metadata(
            2, request(topic("t", ID_T, partition(1, leader=LEADER_DURING_DELETE)))
        )
        rest = cache.update_metadata(
            3, request(topic("t", ID_T, partition(0, leader=LEADER_DURING_DELETE)))
        )

        assert (deleted, rest) == ([TopicPartition("t", 1)], [TopicPartition("t", 0)])
        assert cache.all_topics() == set()
        assert cache.topic_id_info() == ({}, {})

    def test_recreated_topic_has_its_new_id_only(self, cache: MetadataCache) -> None:
        cache.update_metadata(1, request(topic("t", ID_T, partition())))

        cache.update_metadata(2, request(topic("t", ID_U, partition())))

        assert cache.topic_id_info() == ({"t": ID_U}, {ID_U: "t"})

    def test_snapshot_handed_out_does_not_change(self, cache: MetadataCache) -> None:
        cache.update_metadata(1, request(topic("t", ID_T, partition())))
        names = cache.topic_names_to_ids()

        cache.update_metadata(2, request(topic("u", ID_U, partition())))

        assert dict(names) == {"t": ID_T}

    @pytest.mark.parametrize("version", [0, 2, 4, 5, 8])
    def test_every_version_is_understood(self, cache: MetadataCache, version: int) -> None:
        state = partition()
        sent = request(brokers=(broker(0, ("PLAINTEXT",)),))
        sent.live_brokers[0].v0_host, sent.live_brokers[0].v0_port = "plaintext0", 9092
        if version < 5:
            state.topic_name = "t"
            sent.ungrouped_partition_states = [state]
        else:
            sent.topic_states = [topic("t", ID_T, state)]

        received = UpdateMetadataRequest.decode(sent.encode(version), version)
        cache.update_metadata(1, received)

        assert cache.contains(TopicPartition("t", 0))
        node = cache.get_alive_broker_node(0, "PLAINTEXT")
        assert node is not None and (node.host, node.port) == ("plaintext0", 9092)


class TestBrokers:
    def test_nodes_are_those_of_the_listener(self, cache: MetadataCache) -> None:
        cache.update_metadata(1, request(brokers=(broker(0), broker(1, (CLIENT,)))))

        assert cache.get_alive_broker_nodes(INTERNAL) == [Node(0, "internal0", 9092, "r0")]
        assert [node.id for node in cache.get_alive_broker_nodes(CLIENT)] == [0, 1]
        assert cache.get_alive_broker_node(1, INTERNAL) is None

    def test_leader_endpoint(self, cache: MetadataCache) -> None:
        cache.update_metadata(
            1, request(topic("t", ID_T, partition(0, leader=1), partition(1, leader=7)))
        )

        node = Node(1, "client1", 9092, "r1")
        assert cache.get_partition_leader_endpoint("t", 0, CLIENT) == node
        assert cache.get_partition_leader_endpoint("t", 1, CLIENT) == NO_NODE
        assert cache.get_partition_leader_endpoint("t", 2, CLIENT) is None
        assert cache.get_current_leader(TopicPartition("t", 0), CLIENT) == CurrentLeader(1, 4, node)
        assert cache.get_current_leader(TopicPartition("t", 1), CLIENT) == CurrentLeader(7, 4, None)
        assert cache.get_current_leader(TopicPartition("t", 2), CLIENT) is None

    def test_replica_endpoints_are_those_that_can_be_reached(self, cache: MetadataCache) -> None:
        cache.update_metadata(1, request(topic("t", ID_T, partition(replicas=(0, 1, 2)))))

        endpoints = cache.get_partition_replica_endpoints(TopicPartition("t", 0), CLIENT)

        assert sorted(endpoints) == [0, 1]
        assert cache.get_partition_replica_endpoints(TopicPartition("x", 0), CLIENT) == {}


class TestTopicMetadata:
    def test_healthy_topic(self, cache: MetadataCache) -> None:
        cache.update_metadata(1, request(topic("t", ID_T, partition(1), partition(0))))

        (found,) = cache.get_topic_metadata(["none", "t"], CLIENT)

        assert (found.error_code, found.name, found.topic_id) == (0, "t", ID_T)
        assert not found.is_internal
        assert [p.partition_index for p in found.partitions] == [0, 1]
        first = found.partitions[0]
        assert (first.error_code, first.leader_id, first.leader_epoch) == (0, 0, 4)
        assert (first.replica_nodes, first.isr_nodes) == ([0, 1], [0, 1])

    def test_internal_topics_are_marked(self, cache: MetadataCache) -> None:
        cache.update_metadata(1, request(topic("__consumer_offsets", ID_T, partition())))

        assert cache.get_topic_metadata(["__consumer_offsets"], CLIENT)[0].is_internal

    def test_leader_that_is_down(self, cache: MetadataCache) -> None:
        cache.update_metadata(1, request(topic("t", ID_T, partition(leader=7, offline=(7,)))))

        found = cache.get_topic_metadata(["t"], CLIENT)[0].partitions[0]

        assert found.error_code == Errors.LEADER_NOT_AVAILABLE.code
        assert (found.leader_id, found.leader_epoch) == (-1, 4)
        assert found.offline_replicas == [7]

    @pytest.mark.parametrize(
        ("tell", "error"),
        [(True, Errors.LISTENER_NOT_FOUND), (False, Errors.LEADER_NOT_AVAILABLE)],
    )
    def test_leader_without_the_listener(
        self, cache: MetadataCache, tell: bool, error: Errors
    ) -> None:
        cache.update_metadata(
            1, request(topic("t", ID_T, partition()), brokers=(broker(0, (INTERNAL,)),))
        )

        found = cache.get_topic_metadata(["t"], CLIENT, error_unavailable_listeners=tell)

        assert found[0].partitions[0].error_code == error.code
        assert found[0].partitions[0].leader_id == -1

    @pytest.mark.parametrize(
        ("hide", "error", "replicas", "isr"),
        [
            (True, Errors.REPLICA_NOT_AVAILABLE, [0], [0]),
            (False, Errors.NONE, [0, 7], [0, 7]),
        ],
    )
    def test_replicas_that_are_down(
        self, cache: MetadataCache, hide: bool, error: Errors, replicas: list[int], isr: list[int]
    ) -> None:
        state = partition(replicas=(0, 7), isr=(0, 7))
        cache.update_metadata(1, request(topic("t", ID_T, state)))

        found = cache.get_topic_metadata(["t"], CLIENT, error_unavailable_endpoints=hide)

        (result,) = found[0].partitions
        assert (result.error_code, result.leader_id) == (error.code, 0)
        assert (result.replica_nodes, result.isr_nodes) == (replicas, isr)


class TestDescribeTopicPartitions:
    @pytest.fixture
    def three(self, cache: MetadataCache) -> MetadataCache:
        """Topics a, b and c of three partitions each."""
        cache.update_metadata(
            1,
            request(
                *(
                    topic(name, UUID(int=ord(name)), *(partition(p) for p in range(3)))
                    for name in "abc"
                )
            ),
        )
        return cache

    @pytest.mark.parametrize("page_size", [1, 2, 3, 4, 9, 100])
    def test_pages_make_up_the_whole(self, three: MetadataCache, page_size: int) -> None:
        seen: list[tuple[str | None, int]] = []
        names, first = list("abc"), 0

        while True:
            page = three.describe_topic_partitions(
                names, CLIENT, first_partition=first, max_partitions=page_size
            )
            new = [(t.name, p.partition_index) for t in page.topics for p in t.partitions]
            assert 0 < len(new) <= page_size
            seen += new
            if page.next_cursor is None:
                break
            names = names[names.index(page.next_cursor.topic_name) :]
            first = page.next_cursor.partition_index

        assert seen == [(name, p) for name in "abc" for p in range(3)]

    def test_cursor_at_the_end_of_a_topic_names_the_next(self, three: MetadataCache) -> None:
        page = three.describe_topic_partitions("abc", CLIENT, max_partitions=3)

        assert page.next_cursor is not None
        assert (page.next_cursor.topic_name, page.next_cursor.partition_index) == ("b", 0)

    def test_partition_is_described(self, three: MetadataCache) -> None:
        page = three.describe_topic_partitions(["a"], CLIENT, max_partitions=1)

        found = page.topics[0]
        assert (found.name, found.topic_id, found.error_code) == ("a", UUID(int=ord("a")), 0)
        assert (found.partitions[0].leader_id, found.partitions[0].replica_nodes) == (0, [0, 1])
        assert found.partitions[0].eligible_leader_replicas == []

    @pytest.mark.parametrize(
        ("name", "error"),
        [
            ("none", Errors.UNKNOWN_TOPIC_OR_PARTITION),
            ("a/b", Errors.INVALID_TOPIC_EXCEPTION),
        ],
    )
    def test_missing_topics(self, three: MetadataCache, name: str, error: Errors) -> None:
        told = three.describe_topic_partitions([name], CLIENT, max_partitions=9)
        ignored = three.describe_topic_partitions(
            [name], CLIENT, max_partitions=9, ignore_missing=True
        )

        assert [(t.name, t.error_code) for t in told.topics] == [(name, error.code)]
        assert ignored.topics == []
