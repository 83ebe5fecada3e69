"""The seams and shared services that every log of a broker uses."""

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from kafkapy.common.errors import KafkaStorageError
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Histogram
from kafkapy.storage.broker_topic_stats import BrokerTopicStats
from kafkapy.storage.file_system import FileSystem
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel
from kafkapy.utils.scheduler import Scheduler
from kafkapy.utils.time import Time

LOG_FLUSH_RATE_AND_TIME_MS = Histogram(
    "kafka.log:type=LogFlushStats,name=LogFlushRateAndTimeMs",
    "How long forcing a segment to disk took.",
)


class Deletable(Protocol):
    """Something with files of its own."""

    def delete_if_exists(self) -> object: ...


@dataclass(frozen=True, slots=True)
class StorageEnvironment:
    """Made once per broker and handed down. Thread-safe as its parts are."""

    file_system: FileSystem
    time: Time
    scheduler: Scheduler
    log_dir_failure_channel: LogDirFailureChannel
    broker_topic_stats: BrokerTopicStats
    metrics: MetricsRegistry
    rng: random.Random = field(default_factory=random.Random)

    @contextmanager
    def io_errors(self, log_dir: str, doing: str) -> Iterator[None]:
        """Turns an OSError inside into an offline `log_dir` and a KafkaStorageError.

        A directory that has failed before is not touched again.

        Ports: kafka.log.LocalLog.maybeHandleIOException
        """
        self.ensure_online(log_dir)
        try:
            yield
        except OSError as e:
            raise self.io_failure(log_dir, doing, e) from e

    def ensure_online(self, log_dir: str) -> None:
        if self.log_dir_failure_channel.has_offline_log_dir(log_dir):
            raise KafkaStorageError(f"The log directory {log_dir} is offline after an I/O error")

    def delete_later(
        self, doomed: Sequence[Deletable], what: str, log_dir: str, delay_ms: int
    ) -> None:
        """Removes files of a log directory after a while; nobody refers to them any more."""
        if not doomed:
            return

        def delete() -> None:
            with self.io_errors(log_dir, f"deleting {what}"):
                for item in doomed:
                    item.delete_if_exists()

        self.scheduler.schedule_once(f"delete {what}", delete, delay_ms)

    def io_failure(self, log_dir: str, doing: str, error: OSError) -> KafkaStorageError:
        """Takes the directory offline; the error to raise."""
        message = f"Error while {doing} in {log_dir}"
        self.log_dir_failure_channel.maybe_add_offline_log_dir(log_dir, message, error)
        return KafkaStorageError(f"{message}: {error}")
