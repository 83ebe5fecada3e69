from collections.abc import Callable, Collection

from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_zk_handlers import PartitionModificationsWatch
from kafkapy.zk.kafka_zk_client import KafkaZkClient


class ControllerDeletionClient:
    """What the deletion of a topic does to the store, and whom it tells.

    Belongs to the event thread.

    Ports: kafka.controller.ControllerDeletionClient
    """

    def __init__(
        self,
        zk_client: KafkaZkClient,
        partition_modifications: PartitionModificationsWatch,
        send_metadata_update: Callable[[Collection[TopicPartition]], None],
    ) -> None:
        self._zk_client = zk_client  # constant after construction
        self._partition_modifications = partition_modifications
        self.send_metadata_update = send_metadata_update

    def delete_topic(self, topic: str, epoch_zk_version: int) -> None:
        """The request for the deletion goes last: until then a new controller finishes it."""
        self._zk_client.delete_topic_znode(topic, epoch_zk_version)
        self._zk_client.delete_topic_configs([topic], epoch_zk_version)
        self._zk_client.delete_topic_deletions([topic], epoch_zk_version)

    def delete_topic_deletions(self, topics: Collection[str], epoch_zk_version: int) -> None:
        self._zk_client.delete_topic_deletions(sorted(topics), epoch_zk_version)

    def mute_partition_modifications(self, topic: str) -> None:
        self._partition_modifications.unwatch(topic)
