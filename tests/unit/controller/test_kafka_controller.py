"""One broker, which is its own controller."""

from dataclasses import replace
from queue import SimpleQueue

import pytest

from kafkapy.common.errors import ControllerMovedError, Errors
from kafkapy.common.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kafkapy.common.protocol.messages.leader_and_isr import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from kafkapy.common.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kafkapy.common.protocol.messages.update_metadata import UpdateMetadataRequest
from kafkapy.common.protocol.schema import Message
from kafkapy.common.types import TopicPartition, random_topic_id
from kafkapy.controller.controller_config import ControllerConfig
from kafkapy.controller.controller_state import ControllerState
from kafkapy.metadata.leader_and_isr import LeaderAndIsr
from kafkapy.metadata.replica_assignment import ReplicaAssignment
from kafkapy.zk.metadata_store import CreateRequest, DeleteRequest, MultiRequest
from kafkapy.zk.zk_data import (
    BrokerIdZNode,
    ConfigType,
    ControllerZNode,
    TopicPartitionStateZNode,
    TopicZNode,
)
from tests.helpers.waiting import wait_until
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.fake_broker import answer, leader_and_isr_states

TP0 = TopicPartition("t", 0)


def delete_topic(cluster: Cluster, topic: str) -> None:
    """Waits until nothing is left of it."""
    cluster.zk_client.create_delete_topic_path(topic)
    wait_until(lambda: not cluster.zk_client.is_topic_marked_for_deletion(topic))


def test_first_broker_becomes_controller_and_tells_brokers_who_is_there(cluster: Cluster) -> None:
    member = cluster.start()

    (request,) = member.broker.wait_for(UpdateMetadataRequest)[:1]

    assert isinstance(request, UpdateMetadataRequest)
    assert request.controller_id == 0
    assert request.controller_epoch == 1
    assert request.broker_epoch == member.epoch
    assert [b.id for b in request.live_brokers] == [0]
    assert cluster.zk_client.get_controller_id() == 0
    assert member.controller.is_active
    assert member.gauge("ActiveControllerCount") == 1
    wait_until(lambda: member.gauge("ActiveBrokerCount") == 1)
    assert member.gauge("FencedBrokerCount") == 0


def test_new_topic_gets_a_leader_and_its_broker_is_told(cluster: Cluster) -> None:
    member = cluster.start()

    cluster.create_topic("t", [0], [0])

    (request,) = member.broker.wait_for(LeaderAndIsrRequest)
    states = leader_and_isr_states(request)
    assert set(states) == {TP0, TopicPartition("t", 1)}
    assert all(s.leader == 0 and s.isr == [0] and s.is_new for s in states.values())
    assert cluster.state(TP0) == LeaderAndIsr(leader=0, leader_epoch=0, isr=(0,))
    wait_until(lambda: member.gauge("GlobalTopicCount") == 1)
    assert member.gauge("GlobalPartitionCount") == 2
    assert member.gauge("OfflinePartitionsCount") == 0


def test_topic_without_id_is_given_one(cluster: Cluster) -> None:
    member = cluster.start()

    cluster.zk_client.create_topic_assignment("t", None, {TP0: [0]})

    (request,) = member.broker.wait_for(LeaderAndIsrRequest)
    assert isinstance(request, LeaderAndIsrRequest)
    topic_id = cluster.zk_client.get_topic_ids_for_topics(["t"])["t"]
    assert request.topic_states[0].topic_id == topic_id
    assert cluster.zk_client.get_replicas_for_partition(TP0) == (0,)


def test_added_partitions_get_leaders(cluster: Cluster) -> None:
    member = cluster.start()
    cluster.create_topic("t", [0])
    member.broker.wait_for(LeaderAndIsrRequest)
    member.broker.clear()
    (topic,) = cluster.zk_client.get_replica_assignment_and_topic_id_for_topics(["t"])
    added = TopicPartition("t", 1)

    cluster.zk_client.set_topic_assignment(
        "t", topic.topic_id, {**topic.assignment, added: ReplicaAssignment.of([0])}
    )

    (request,) = member.broker.wait_for(LeaderAndIsrRequest)
    assert set(leader_and_isr_states(request)) == {added}
    cluster.wait_for_leader(added, 0)


def test_deleted_topic_leaves_brokers_and_store_and_can_be_made_again(cluster: Cluster) -> None:
    member = cluster.start()
    cluster.create_topic("t", [0], [0])
    zk_client = cluster.zk_client
    zk_client.set_or_create_entity_configs(ConfigType.TOPIC, "t", {"retention.ms": "5"})
    old_id = zk_client.get_topic_ids_for_topics(["t"])["t"]

    delete_topic(cluster, "t")

    assert member.broker.deleted_partitions == {TP0, TopicPartition("t", 1)}
    assert not zk_client.topic_exists("t")
    assert zk_client.get_all_entities_with_config(ConfigType.TOPIC) == []
    wait_until(lambda: member.gauge("GlobalTopicCount") == 0)
    assert member.gauge("TopicsToDeleteCount") == 0
    assert member.gauge("OfflinePartitionsCount") == 0

    member.broker.clear()
    cluster.create_topic("t", [0])

    (request,) = member.broker.wait_for(LeaderAndIsrRequest)
    assert isinstance(request, LeaderAndIsrRequest)
    assert request.topic_states[0].topic_id not in (old_id, None)
    assert set(leader_and_isr_states(request)) == {TP0}


def test_brokers_learn_of_a_deletion_before_their_replicas_are_stopped(cluster: Cluster) -> None:
    member = cluster.start()
    cluster.create_topic("t", [0])
    cluster.wait_until_idle()
    member.broker.clear()

    delete_topic(cluster, "t")

    kinds = [type(request).__name__ for request in member.broker.requests]
    assert kinds == ["UpdateMetadataRequest", "StopReplicaRequest", "StopReplicaRequest"]


def test_deletion_of_an_unknown_topic_is_dropped(cluster: Cluster) -> None:
    cluster.start()

    delete_topic(cluster, "nowhere")

    assert cluster.zk_client.get_topic_deletions() == []


def test_deletion_is_refused_when_switched_off(cluster: Cluster) -> None:
    cluster.config = ControllerConfig(delete_topic_enable=False)
    member = cluster.start()
    cluster.create_topic("t", [0])

    delete_topic(cluster, "t")

    cluster.wait_until_idle()
    assert cluster.zk_client.topic_exists("t")
    assert member.broker.deleted_partitions == set()


def test_failed_deletion_halts_until_the_broker_is_back(cluster: Cluster) -> None:
    member = cluster.start()
    cluster.create_topic("t", [0])
    broken = True

    def respond(request: Message) -> Message:
        response = answer(request)
        if isinstance(response, StopReplicaResponse) and broken:
            for entry in response.partition_errors:
                entry.error_code = Errors.KAFKA_STORAGE_ERROR.code
        return response

    member.broker.respond = respond
    cluster.zk_client.create_delete_topic_path("t")
    wait_until(lambda: member.gauge("TopicsIneligibleToDeleteCount") == 1)
    assert member.gauge("TopicsToDeleteCount") == 1
    assert cluster.zk_client.topic_exists("t")

    broken = False
    cluster.stop(0)
    cluster.start()

    wait_until(lambda: not cluster.zk_client.is_topic_marked_for_deletion("t"))
    assert not cluster.zk_client.topic_exists("t")


def test_partitions_added_to_a_topic_being_deleted_are_taken_back(cluster: Cluster) -> None:
    member = cluster.start()
    cluster.create_topic("t", [0])
    (topic,) = cluster.zk_client.get_replica_assignment_and_topic_id_for_topics(["t"])
    member.broker.respond = lambda request: (
        None if isinstance(request, StopReplicaRequest) else answer(request)
    )
    cluster.zk_client.create_delete_topic_path("t")
    wait_until(lambda: member.gauge("TopicsToDeleteCount") == 1)

    added = {**topic.assignment, TopicPartition("t", 1): ReplicaAssignment.of([0])}
    cluster.zk_client.set_topic_assignment("t", topic.topic_id, added)

    wait_until(lambda: cluster.zk_client.get_topic_partition_count("t") == 1)


def test_restarted_controller_recovers_its_state(cluster: Cluster) -> None:
    first = cluster.start()
    cluster.create_topic("t", [0], [0])
    topic_id = cluster.zk_client.get_topic_ids_for_topics(["t"])["t"]
    cluster.stop(0)
    first.broker.clear()

    second = cluster.start()

    requests = second.broker.wait_for(LeaderAndIsrRequest)
    assert set(leader_and_isr_states(requests[0])) == {TP0, TopicPartition("t", 1)}
    assert isinstance(requests[0], LeaderAndIsrRequest)
    assert requests[0].controller_epoch == 2
    assert requests[0].broker_epoch == second.epoch
    assert second.epoch > first.epoch
    assert requests[0].topic_states[0].topic_id == topic_id
    assert not any(s.is_new for s in leader_and_isr_states(requests[0]).values())
    cluster.wait_until_idle()
    assert second.controller.context.topic_ids == {"t": topic_id}
    assert second.gauge("OfflinePartitionsCount") == 0


def test_deletion_interrupted_by_a_restart_is_finished(cluster: Cluster) -> None:
    cluster.start()
    cluster.create_topic("t", [0])
    cluster.stop(0)
    cluster.zk_client.create_delete_topic_path("t")

    cluster.start()

    wait_until(lambda: not cluster.zk_client.is_topic_marked_for_deletion("t"))
    assert not cluster.zk_client.topic_exists("t")


def test_topic_created_without_a_controller_is_found_at_the_next_start(cluster: Cluster) -> None:
    cluster.zk_client.create_topic_assignment("t", random_topic_id(), {TP0: [0]})

    cluster.start()

    cluster.wait_for_leader(TP0, 0)


def test_stale_controller_resigns_at_its_next_write(cluster: Cluster) -> None:
    member = cluster.start()
    cluster.create_topic("t", [0])
    cluster.wait_until_idle()
    controller = member.controller
    # Another broker has taken over, and this one has not heard of it yet.
    member.store.unregister_znode_change_handler(ControllerZNode.path)
    cluster.zk_client._sender.send(
        MultiRequest(
            (
                DeleteRequest(ControllerZNode.path),
                CreateRequest(ControllerZNode.path, ControllerZNode.encode(9, 0)),
            )
        )
    ).maybe_raise()
    found = cluster.zk_client.get_controller_epoch()
    assert found is not None
    epoch, stat = found
    cluster.zk_client.set_controller_epoch_raw(epoch + 1, stat.version)

    cluster.zk_client.create_topic_assignment("u", random_topic_id(), {TopicPartition("u", 0): [0]})

    wait_until(lambda: not controller.is_active)
    assert controller.active_controller_id == 9
    assert cluster.state(TopicPartition("u", 0)) is None
    wait_until(lambda: member.gauge("GlobalTopicCount") == 0)
    assert member.gauge("ActiveControllerCount") == 0


def test_lost_session_leads_to_a_new_registration_and_a_new_epoch(cluster: Cluster) -> None:
    member = cluster.start()
    cluster.create_topic("t", [0])
    old_epoch = member.controller.broker_epoch
    member.broker.clear()

    member.store.expire_session()

    wait_until(lambda: member.controller.broker_epoch > old_epoch)
    wait_until(lambda: member.controller.is_active)
    requests = member.broker.wait_for(LeaderAndIsrRequest)
    assert isinstance(requests[-1], LeaderAndIsrRequest)
    assert requests[-1].broker_epoch == member.controller.broker_epoch
    assert requests[-1].controller_epoch == 2


def test_deleted_controller_znode_leads_to_a_new_election(cluster: Cluster) -> None:
    member = cluster.start()
    cluster.create_topic("t", [0])

    cluster.zk_client.znodes.delete_path(ControllerZNode.path)

    wait_until(lambda: cluster.zk_client.get_controller_id() == 0)
    wait_until(lambda: member.controller.context.epoch == 2)
    cluster.create_topic("u", [0])


def test_offline_log_dir_takes_its_partition_offline_until_the_broker_restarts(
    cluster: Cluster,
) -> None:
    member = cluster.start()
    cluster.create_topic("t", [0], [0])
    cluster.wait_until_idle()
    failed = TopicPartition("t", 1)

    def respond(request: Message) -> Message:
        response = answer(request)
        if isinstance(response, LeaderAndIsrResponse):
            for topic in response.topics:
                for entry in topic.partition_errors:
                    if entry.partition_index == failed.partition:
                        entry.error_code = Errors.KAFKA_STORAGE_ERROR.code
        return response

    member.broker.respond = respond
    cluster.zk_client.propagate_log_dir_event(0)

    wait_until(lambda: member.gauge("OfflinePartitionsCount") == 1)
    cluster.wait_for_leader(failed, -1)
    wait_until(lambda: not cluster.zk_client.get_log_dir_event_notifications())
    state = cluster.state(TP0)
    assert state is not None
    assert state.leader == 0

    member.broker.respond = answer
    cluster.stop(0)
    restarted = cluster.start()

    cluster.wait_for_leader(failed, 0)
    wait_until(lambda: restarted.gauge("OfflinePartitionsCount") == 0)


def test_isr_change_notification_is_passed_on_and_removed(cluster: Cluster) -> None:
    member = cluster.start()
    cluster.create_topic("t", [0])
    cluster.wait_until_idle()
    member.broker.clear()
    state = cluster.state(TP0)
    assert state is not None
    epoch = cluster.zk_client.get_controller_epoch()
    assert epoch is not None
    changed = replace(state, isr=(0,))
    cluster.zk_client.update_leader_and_isr({TP0: changed}, epoch[0], epoch[1].version)

    cluster.zk_client.propagate_isr_changes([TP0])

    (request,) = member.broker.wait_for(UpdateMetadataRequest)
    assert isinstance(request, UpdateMetadataRequest)
    assert request.topic_states[0].partition_states[0].zk_version == 1
    wait_until(lambda: not cluster.zk_client.get_all_isr_change_notifications())


def test_changed_endpoint_is_told_to_the_brokers(cluster: Cluster) -> None:
    member = cluster.start()
    cluster.wait_until_idle()
    member.broker.clear()
    info = member.broker.info
    moved = replace(info.broker.endpoints[0], host="elsewhere")
    info = replace(info, broker=replace(info.broker, endpoints=(moved,)))

    member.controller.update_broker_info(info)

    (request,) = member.broker.wait_for(UpdateMetadataRequest)
    assert isinstance(request, UpdateMetadataRequest)
    assert request.live_brokers[0].endpoints[0].host == "elsewhere"


def test_shutdown_answers_whoever_still_waits(cluster: Cluster) -> None:
    member = cluster.start()
    outcomes: SimpleQueue[object] = SimpleQueue()
    cluster.stop(0)

    member.controller.controlled_shutdown(0, member.epoch, outcomes.put)

    assert isinstance(outcomes.get(timeout=10), ControllerMovedError)


def test_malformed_topic_is_left_out_and_the_others_live(cluster: Cluster) -> None:
    cluster.zk_client.znodes.create_recursive(TopicZNode.path("bad"), b"not json")
    cluster.zk_client.create_topic_assignment("t", random_topic_id(), {TP0: [0]})

    cluster.start()

    cluster.wait_for_leader(TP0, 0)
    cluster.zk_client.znodes.create_recursive(TopicZNode.path("worse"), b"{}")
    cluster.create_topic("u", [0])
    assert cluster.controller.context.epoch == 1


def test_failover_that_fails_is_tried_again_after_a_second(cluster: Cluster) -> None:
    member = cluster.start()
    bad_broker = BrokerIdZNode.path(7)
    cluster.zk_client.znodes.create_recursive(bad_broker, b"not json")

    def stored_epoch() -> int | None:
        found = cluster.zk_client.get_controller_epoch()
        return found[0] if found is not None else None

    def has_resigned() -> bool:
        manager = member.controller.event_manager
        is_idle = manager.is_empty and manager.state == ControllerState.IDLE
        return is_idle and member.controller.active_controller_id < 0

    cluster.zk_client.znodes.delete_path(ControllerZNode.path)
    for epoch in (2, 3):
        wait_until(lambda epoch=epoch: stored_epoch() == epoch and has_resigned())  # type: ignore[misc]
        assert cluster.zk_client.get_controller_id() == 0
        if epoch == 3:
            cluster.zk_client.znodes.delete_path(bad_broker)
        member.time.sleep(1000)

    cluster.create_topic("t", [0])
    assert cluster.controller.context.epoch == 4


@pytest.mark.parametrize("state", [b"not json", b"{}"])
def test_malformed_state_keeps_one_partition_without_a_leader_and_the_others_live(
    cluster: Cluster, state: bytes
) -> None:
    bad = TopicPartition("bad", 0)
    cluster.zk_client.create_topic_assignment("bad", random_topic_id(), {bad: [0]})
    cluster.zk_client.znodes.create_recursive(TopicPartitionStateZNode.path(bad), state)
    cluster.zk_client.create_topic_assignment("t", random_topic_id(), {TP0: [0]})

    cluster.start()

    cluster.wait_for_leader(TP0, 0)
    cluster.create_topic("u", [0])
    assert cluster.controller.context.epoch == 1


@pytest.mark.parametrize(
    "path", ["/admin/reassign_partitions", "/admin/preferred_replica_election"]
)
def test_malformed_admin_request_does_not_keep_a_broker_from_becoming_controller(
    cluster: Cluster, path: str
) -> None:
    cluster.zk_client.znodes.create_recursive(path, b"not json")

    cluster.start()
    cluster.create_topic("t", [0])

    assert cluster.controller.context.epoch == 1


def test_producer_ids_are_given_out_in_blocks_to_registered_brokers_only(
    cluster: Cluster,
) -> None:
    member = cluster.start()
    answers: SimpleQueue[AllocateProducerIdsResponse] = SimpleQueue()

    for broker_id, epoch in (
        (0, member.epoch),
        (0, member.epoch),
        (0, member.epoch - 1),
        (7, 1),
    ):
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=epoch)
        member.controller.allocate_producer_ids(request, answers.put)

    responses = [answers.get(timeout=10) for _ in range(4)]
    assert [r.producer_id_start for r in responses[:2]] == [0, 1000]
    assert [r.producer_id_len for r in responses[:2]] == [1000, 1000]
    assert [Errors.for_code(r.error_code) for r in responses] == [
        Errors.NONE,
        Errors.NONE,
        Errors.STALE_BROKER_EPOCH,
        Errors.BROKER_ID_NOT_REGISTERED,
    ]
