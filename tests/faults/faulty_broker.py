"""A broker in this process over a disk that fails on cue."""

import re
from collections.abc import Mapping
from pathlib import Path

from kafkapy.common.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from kafkapy.server.kafka_config import KafkaConfig
from kafkapy.server.kafka_server import KafkaServer
from kafkapy.utils.time import SystemTime
from tests.helpers.api import fetch, fetched_records, topic_metadata
from tests.helpers.broker import Broker, Client
from tests.helpers.crashing_fs import CrashingFileSystem
from tests.helpers.waiting import wait_until

_OFFLINE_COUNT = re.compile(r"kafka_log_logmanager_offlinelogdirectorycount(?:\{\})? (\d+)")
_WAITING_FETCHES = re.compile(
    r'kafka_server_delayedoperationpurgatory_numdelayedoperations\{delayedOperation="Fetch"\} (\d+)'
)


class FaultyBroker(Broker):
    """Its log files, not its metadata store, are on the faulty disk."""

    def __init__(
        self,
        log_dirs: list[Path],
        file_system: CrashingFileSystem,
        properties: Mapping[str, str] | None = None,
    ) -> None:
        self.file_system = file_system
        self.fatal_errors: list[str] = []
        super().__init__(
            log_dirs[0],
            {
                "log.dirs": ",".join(map(str, log_dirs)),
                "prometheus.port": "0",
                # The faulty disk keeps a copy of each file.
                "log.index.size.max.bytes": "10240",
                **(properties or {}),
            },
        )

    def _new_server(self) -> KafkaServer:
        return KafkaServer(
            KafkaConfig(self.properties),
            SystemTime(),
            file_system=self.file_system,
            store=self._open_store,
            on_fatal_error=self.fatal_errors.append,
        )

    def waiting_fetches(self) -> int:
        found = _WAITING_FETCHES.search(self.scrape())
        assert found is not None
        return int(found[1])

    def offline_log_dirs(self) -> int:
        found = _OFFLINE_COUNT.search(self.scrape())
        assert found is not None
        return int(found[1])


def log_dir_errors(client: Client) -> dict[str, int]:
    """What DescribeLogDirs says of every directory."""
    response = client.request(DescribeLogDirsRequest(topics=None))
    return {result.log_dir: result.error_code for result in response.results}


def partition_dirs(log_dirs: list[Path], topic: str) -> dict[int, Path]:
    """Which directory each partition of a topic is in."""
    return {
        int(partition.name.rpartition("-")[2]): log_dir
        for log_dir in log_dirs
        for partition in log_dir.glob(f"{topic}-*")
    }


def wait_for_leaders(client: Client, topic: str) -> None:
    """After a start: what had no leader gets one a little later."""
    wait_until(
        lambda: all(p.leader_id >= 0 for p in topic_metadata(client, topic).partitions),
        message=f"a partition of {topic} stays without a leader",
    )


def read_all(client: Client, topic: str, partition: int = 0) -> list[bytes | None]:
    """Every value of a partition, with its offsets and checksums checked."""
    found: list[bytes | None] = []
    while True:
        data = fetch(client, topic, len(found), partition=partition)
        batch = fetched_records(data)
        if not batch:
            assert data.high_watermark == len(found)
            return found
        for record in batch:
            assert record.offset == len(found)
            found.append(record.value)
