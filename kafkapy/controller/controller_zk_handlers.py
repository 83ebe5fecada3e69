"""What the controller watches in the store. Each change only puts an event on the queue."""

from collections.abc import Callable

from kafkapy.controller.controller_events import (
    BrokerChange,
    BrokerModifications,
    ControllerChange,
    ControllerEvent,
    ElectionTrigger,
    ElectionType,
    IsrChangeNotification,
    LogDirEventNotification,
    PartitionModifications,
    Reelect,
    ReplicaLeaderElection,
    TopicChange,
    TopicDeletion,
    ZkPartitionReassignment,
)
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.metadata_store import ZNodeChangeHandler, ZNodeChildChangeHandler
from kafkapy.zk.zk_data import (
    BrokerIdsZNode,
    BrokerIdZNode,
    ControllerZNode,
    DeleteTopicsZNode,
    IsrChangeNotificationZNode,
    LogDirEventNotificationZNode,
    PreferredReplicaElectionZNode,
    ReassignPartitionsZNode,
    TopicsZNode,
    TopicZNode,
)

PutEvent = Callable[[ControllerEvent], object]


class EventOnChildChange(ZNodeChildChangeHandler):
    """Puts the same event whenever children of a znode come or go."""

    def __init__(self, path: str, event: ControllerEvent, put: PutEvent) -> None:
        self.path = path
        self._event = event
        self._put = put

    def handle_child_change(self) -> None:
        self._put(self._event)


class EventOnChange(ZNodeChangeHandler):
    """Puts an event for each kind of change of a znode that has one."""

    def __init__(
        self,
        path: str,
        put: PutEvent,
        *,
        creation: ControllerEvent | None = None,
        deletion: ControllerEvent | None = None,
        data_change: ControllerEvent | None = None,
    ) -> None:
        self.path = path
        self._put = put
        self._creation = creation
        self._deletion = deletion
        self._data_change = data_change

    def handle_creation(self) -> None:
        if self._creation is not None:
            self._put(self._creation)

    def handle_deletion(self) -> None:
        if self._deletion is not None:
            self._put(self._deletion)

    def handle_data_change(self) -> None:
        if self._data_change is not None:
            self._put(self._data_change)


def child_change_handlers(put: PutEvent) -> tuple[EventOnChildChange, ...]:
    """Registered while this broker is the controller."""
    return (
        EventOnChildChange(BrokerIdsZNode.path, BrokerChange(), put),
        EventOnChildChange(TopicsZNode.path, TopicChange(), put),
        EventOnChildChange(DeleteTopicsZNode.path, TopicDeletion(), put),
        EventOnChildChange(LogDirEventNotificationZNode.path, LogDirEventNotification(), put),
        EventOnChildChange(IsrChangeNotificationZNode.path, IsrChangeNotification(), put),
    )


def controller_change_handler(put: PutEvent) -> EventOnChange:
    """Registered always: a controller that goes away has to be succeeded."""
    return EventOnChange(
        ControllerZNode.path,
        put,
        creation=ControllerChange(),
        deletion=Reelect(),
        data_change=ControllerChange(),
    )


def broker_modifications_handler(broker_id: int, put: PutEvent) -> EventOnChange:
    path = BrokerIdZNode.path(broker_id)
    return EventOnChange(path, put, data_change=BrokerModifications(broker_id))


def partition_modifications_handler(topic: str, put: PutEvent) -> EventOnChange:
    path = TopicZNode.path(topic)
    return EventOnChange(path, put, data_change=PartitionModifications(topic))


def partition_reassignment_handler(put: PutEvent) -> EventOnChange:
    """Only the creation counts: the controller itself changes the znode as partitions move."""
    return EventOnChange(ReassignPartitionsZNode.path, put, creation=ZkPartitionReassignment())


def preferred_replica_election_handler(put: PutEvent) -> EventOnChange:
    event = ReplicaLeaderElection(
        None, ElectionType.PREFERRED, ElectionTrigger.ZK, lambda results: None
    )
    return EventOnChange(PreferredReplicaElectionZNode.path, put, creation=event)


class PartitionModificationsWatch:
    """The handlers on topic znodes. Belongs to the event thread.

    Ports: kafka.controller.PartitionModificationsHandler
    """

    def __init__(self, zk_client: KafkaZkClient, put_event: PutEvent) -> None:
        self._zk_client = zk_client  # constant after construction
        self._put_event = put_event
        self._paths: dict[str, str] = {}

    def watch(self, topic: str) -> None:
        """From the next read of the topic's znode on."""
        handler = partition_modifications_handler(topic, self._put_event)
        self._zk_client.register_znode_change_handler(handler)
        self._paths[topic] = handler.path

    def unwatch(self, topic: str) -> None:
        path = self._paths.pop(topic, None)
        if path is not None:
            self._zk_client.unregister_znode_change_handler(path)

    def unwatch_all(self) -> None:
        for topic in list(self._paths):
            self.unwatch(topic)
