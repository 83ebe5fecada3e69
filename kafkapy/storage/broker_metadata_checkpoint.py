"""Which broker a log directory belongs to."""

import logging
import os
from collections.abc import Iterable
from dataclasses import dataclass

from kafkapy.storage.file_system import FileSystem, atomic_write
from kafkapy.storage.log_file_utils import META_PROPERTIES_FILE
from kafkapy.storage.storage_errors import InconsistentBrokerMetadataError
from kafkapy.utils.properties import parse_properties

logger = logging.getLogger(__name__)

_VERSION = 0


@dataclass(frozen=True, slots=True)
class BrokerMetadata:
    """What meta.properties says; an older file may lack the cluster id.

    Ports: org.apache.kafka.metadata.properties.MetaProperties
    """

    broker_id: int
    cluster_id: str | None


class BrokerMetadataCheckpoint:
    """meta.properties of one log directory. Not thread-safe.

    Ports: org.apache.kafka.metadata.properties.PropertiesUtils
    """

    def __init__(self, log_dir: str, file_system: FileSystem) -> None:
        self.path = os.path.join(log_dir, META_PROPERTIES_FILE)
        self._file_system = file_system

    def write(self, metadata: BrokerMetadata) -> None:
        lines = ["#", f"broker.id={metadata.broker_id}", f"version={_VERSION}"]
        if metadata.cluster_id is not None:
            lines.append(f"cluster.id={metadata.cluster_id}")
        atomic_write(self._file_system, self.path, ("\n".join(lines) + "\n").encode())

    def read(self) -> BrokerMetadata | None:
        """None if there is no file, as in a new directory."""
        try:
            properties = parse_properties(self._file_system.read_bytes(self.path).decode())
        except FileNotFoundError:
            return None
        try:
            if int(properties["version"]) != _VERSION:
                raise ValueError(f"version {properties['version']}, expected {_VERSION}")
            return BrokerMetadata(int(properties["broker.id"]), properties.get("cluster.id"))
        except (ValueError, KeyError) as e:
            raise InconsistentBrokerMetadataError(f"Malformed {self.path}: {e!r}") from e


@dataclass(frozen=True, slots=True)
class LoadedBrokerMetadata:
    """What all directories agree on, and those that could not be read."""

    metadata: BrokerMetadata | None
    offline_dirs: tuple[str, ...]


def load_broker_metadata(log_dirs: Iterable[str], file_system: FileSystem) -> LoadedBrokerMetadata:
    """Raises InconsistentBrokerMetadataError if the directories belong to different brokers."""
    found: dict[BrokerMetadata, str] = {}
    offline: list[str] = []
    for log_dir in log_dirs:
        try:
            metadata = BrokerMetadataCheckpoint(log_dir, file_system).read()
        except OSError as e:
            logger.error("%s cannot be read in %s: %s", META_PROPERTIES_FILE, log_dir, e)
            offline.append(log_dir)
            continue
        if metadata is not None:
            found[metadata] = log_dir
    if len(found) > 1:
        listed = ", ".join(f"{log_dir}: {metadata}" for metadata, log_dir in found.items())
        raise InconsistentBrokerMetadataError(
            f"log.dirs names directories of different brokers ({listed})"
        )
    return LoadedBrokerMetadata(next(iter(found), None), tuple(offline))
