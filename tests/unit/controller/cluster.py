"""Controllers over one store, with fake brokers for them to command."""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.protocol.messages.update_metadata import UpdateMetadataRequest
from kafkapy.common.types import TopicPartition, random_topic_id
from kafkapy.controller.controller_config import ControllerConfig
from kafkapy.controller.kafka_controller import KafkaController
from kafkapy.metadata.leader_and_isr import LeaderAndIsr
from kafkapy.utils.time import SystemTime
from kafkapy.zk.embedded_store import EmbeddedStore
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from tests.helpers.mock_time import MockTime
from tests.helpers.waiting import wait_until
from tests.unit.controller.builders import LISTENER
from tests.unit.controller.fake_broker import FakeBroker


class Member:
    """A broker's session with the store, its fake listener, and its candidate for controller."""

    def __init__(self, store: EmbeddedStore, broker: FakeBroker, config: ControllerConfig) -> None:
        self.broker = broker
        self.store = store
        self.zk_client = KafkaZkClient(store, SystemTime())
        self.epoch = self.zk_client.register_broker(broker.info)
        self.metrics = MetricsRegistry()
        self.time = MockTime()  # of the scheduler only
        self.scheduler = self.time.scheduler
        self.controller = KafkaController(
            config,
            self.zk_client,
            broker_info=broker.info,
            broker_epoch=self.epoch,
            inter_broker_listener_name=LISTENER,
            time=SystemTime(),
            metrics=self.metrics,
            scheduler=self.scheduler,
        )

    def start(self) -> None:
        self.controller.startup()

    def stop(self) -> None:
        self.controller.shutdown()
        self.zk_client.close()

    def gauge(self, name: str) -> float:
        mbean = f"kafka.controller:type=KafkaController,name={name}"
        values = [s.value for s in self.metrics.samples() if s.spec.mbean == mbean]
        assert len(values) == 1
        assert isinstance(values[0], int | float)
        return values[0]


class Cluster:
    """Members are added one by one; the first to start becomes the controller."""

    def __init__(self, store: EmbeddedStore, zk_client: KafkaZkClient) -> None:
        self._store = store
        self.zk_client = zk_client
        self.config = ControllerConfig()
        self.brokers: dict[int, FakeBroker] = {}
        self.members: dict[int, Member] = {}

    def start(self, broker_id: int = 0) -> Member:
        """Waits until the member knows who is the controller, and the controller of it."""
        broker = self.brokers.get(broker_id)
        if broker is None:
            broker = self.brokers[broker_id] = FakeBroker(broker_id)
        told = len(broker.received(UpdateMetadataRequest))
        member = Member(self._store.new_session(), broker, self.config)
        self.members[broker_id] = member
        member.start()
        wait_until(lambda: member.controller.active_controller_id >= 0)
        broker.wait_for(UpdateMetadataRequest, told + 1)
        return member

    def stop(self, broker_id: int) -> None:
        self.members.pop(broker_id).stop()

    @property
    def controller(self) -> KafkaController:
        (active,) = [m.controller for m in self.members.values() if m.controller.is_active]
        return active

    def create_topic(self, topic: str, *assignments: Sequence[int]) -> list[TopicPartition]:
        """Waits until every partition has a leader and every broker knows it."""
        partitions = [TopicPartition(topic, p) for p in range(len(assignments))]
        self.zk_client.create_topic_assignment(
            topic, random_topic_id(), dict(zip(partitions, assignments, strict=True))
        )
        for partition in partitions:
            self.wait_for_leader(partition)
        for broker_id in self.members:
            self.brokers[broker_id].wait_for_metadata(partitions)
        return partitions

    def state(self, partition: TopicPartition) -> LeaderAndIsr | None:
        info = self.zk_client.get_topic_partition_state(partition)
        return info.leader_and_isr if info is not None else None

    def wait_for_leader(self, partition: TopicPartition, leader: int | None = None) -> None:
        def has_leader() -> bool:
            state = self.state(partition)
            if state is None:
                return False
            return state.leader == leader if leader is not None else state.leader >= 0

        wait_until(has_leader, message=f"{partition} has {self.state(partition)}")

    def wait_until_idle(self) -> None:
        """Until the controller has processed everything that is under way now."""
        manager = self.controller.event_manager
        wait_until(lambda: manager.is_empty and manager.state == 0)

    def close(self) -> None:
        for broker_id in list(self.members):
            self.stop(broker_id)
        for broker in self.brokers.values():
            broker.close()
