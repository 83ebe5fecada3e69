"""Which topic a partition directory belongs to."""

import os
import threading
from uuid import UUID

from kafkapy.common.errors import InconsistentTopicIdError, KafkaStorageError
from kafkapy.common.types import ZERO_UUID, uuid_from_base64, uuid_to_base64
from kafkapy.storage.file_system import FileSystem, atomic_write
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel
from kafkapy.storage.log_file_utils import PARTITION_METADATA_FILE
from kafkapy.utils.properties import parse_properties

_VERSION = 0


class PartitionMetadataFile:
    """The topic id of a partition, remembered first and written before the first record.

    Thread-safe.

    Ports: org.apache.kafka.storage.internals.checkpoint.PartitionMetadataFile
    """

    def __init__(
        self,
        directory: str,
        *,
        file_system: FileSystem,
        log_dir_failure_channel: LogDirFailureChannel,
    ) -> None:
        self.path = os.path.join(directory, PARTITION_METADATA_FILE)  # constant
        self._log_dir = os.path.dirname(directory)
        self._file_system = file_system
        self._log_dir_failure_channel = log_dir_failure_channel
        self._lock = threading.Lock()
        self._dirty_topic_id: UUID | None = None  # guarded by self._lock

    @property
    def is_dirty(self) -> bool:
        return self._dirty_topic_id is not None

    def record(self, topic_id: UUID) -> None:
        """To be written by the next `maybe_flush`."""
        with self._lock:
            if self._dirty_topic_id not in (None, topic_id):
                raise InconsistentTopicIdError(
                    f"{self.path} is about to hold the topic id {self._dirty_topic_id}, not "
                    f"{topic_id}"
                )
            self._dirty_topic_id = topic_id

    def settle(self, topic_id: UUID | None) -> UUID | None:
        """The id on disk, else the given one, which is then to be written.

        Raises InconsistentTopicIdError if the two differ.
        """
        if self.exists():
            on_disk = self.read()
            if topic_id not in (None, on_disk):
                raise InconsistentTopicIdError(
                    f"{os.path.dirname(self.path)} belongs to the topic id {on_disk}, not "
                    f"{topic_id}"
                )
            return on_disk
        if topic_id is not None:
            self.record(topic_id)
        return topic_id

    def maybe_flush(self) -> None:
        if not self.is_dirty:
            return
        with self._lock:
            topic_id = self._dirty_topic_id
            if topic_id is None:
                return
            text = f"version: {_VERSION}\ntopic_id: {uuid_to_base64(topic_id)}"
            try:
                atomic_write(self._file_system, self.path, text.encode())
            except OSError as e:
                raise self._fail("writing", e) from e
            self._dirty_topic_id = None

    def exists(self) -> bool:
        return self._file_system.exists(self.path)

    def read(self) -> UUID:
        with self._lock:
            try:
                properties = parse_properties(self._file_system.read_bytes(self.path).decode())
                if int(properties["version"]) != _VERSION:
                    raise OSError(f"{self.path} has version {properties['version']}")
                topic_id = uuid_from_base64(properties["topic_id"])
                if topic_id == ZERO_UUID:
                    raise OSError(f"{self.path} holds the reserved topic id {topic_id}")
                return topic_id
            except (ValueError, KeyError) as e:
                malformed = OSError(f"Malformed {self.path}: {e!r}")
                raise self._fail("reading", malformed) from e
            except OSError as e:
                raise self._fail("reading", e) from e

    def delete(self) -> None:
        self._file_system.unlink_if_exists(self.path)

    def _fail(self, doing: str, error: OSError) -> KafkaStorageError:
        message = f"Error while {doing} the partition metadata file {self.path}"
        self._log_dir_failure_channel.maybe_add_offline_log_dir(self._log_dir, message, error)
        return KafkaStorageError(f"{message}: {error}")
