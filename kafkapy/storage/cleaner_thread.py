"""One thread that compacts logs."""

import logging
from collections.abc import Callable

from kafkapy.common.errors import KafkaStorageError
from kafkapy.common.types import TopicPartition
from kafkapy.storage.cleaner import Cleaner
from kafkapy.storage.cleaner_config import CleanerConfig
from kafkapy.storage.cleaner_stats import CleanerStats, PreCleanStats
from kafkapy.storage.log_cleaner_manager import LogCleanerManager
from kafkapy.storage.log_to_clean import LogToClean
from kafkapy.storage.skimpy_offset_map import SkimpyOffsetMap
from kafkapy.storage.storage_environment import StorageEnvironment
from kafkapy.storage.storage_errors import CleanerShutdownError, LogCleaningAbortedError
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.utils.cpu_pacer import CpuPacer
from kafkapy.utils.threads import ShutdownableThread
from kafkapy.utils.throttler import Throttler

logger = logging.getLogger(__name__)


class CleanerThread(ShutdownableThread):
    """Compacts the dirtiest log, over and over; waits when none is dirty enough.

    A log that cannot be compacted is marked and left alone, whatever is wrong with it.

    Ports: kafka.log.LogCleaner.CleanerThread
    """

    def __init__(
        self,
        thread_id: int,
        config: CleanerConfig,
        manager: LogCleanerManager,
        throttler: Throttler,
        environment: StorageEnvironment,
        *,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        super().__init__(f"kafka-log-cleaner-thread-{thread_id}", on_failure=on_failure)
        # constant after construction
        self._config = config
        self._manager = manager
        self._environment = environment
        self._cleaner = Cleaner(
            SkimpyOffsetMap(config.dedupe_buffer_size // config.num_threads),
            io_buffer_size=config.io_buffer_size // config.num_threads // 2,
            dup_buffer_load_factor=config.dedupe_buffer_load_factor,
            throttler=throttler,
            pacer=CpuPacer(environment.time),
            time=environment.time,
            check_done=self._check_done,
        )
        # written by this thread, read by anyone
        self.last_stats = CleanerStats(environment.time)
        self.last_pre_clean_stats = PreCleanStats()

    def do_work(self) -> None:
        if not self.clean_filthiest_log():
            self.pause(self._config.backoff_ms)
        self._manager.maintain_uncleanable_partitions()

    def clean_filthiest_log(self) -> bool:
        """Whether there was one and nothing is wrong with it; applies retention to all compacted
        logs in any case."""
        pre_clean_stats = PreCleanStats()
        cleanable = self._manager.grab_filthiest_compacted_log(pre_clean_stats)
        is_cleaned = False
        if cleanable is not None:
            self.last_pre_clean_stats = pre_clean_stats
            is_cleaned = self._clean_log(cleanable)
        self._delete_old_segments()
        return is_cleaned

    def _clean_log(self, cleanable: LogToClean) -> bool:
        log = cleanable.log
        # Kept for `done_cleaning`: the log may be renamed while it is compacted.
        log_dir = log.parent_dir
        end_offset = cleanable.first_dirty_offset
        try:
            end_offset, self.last_stats = self._cleaner.clean(cleanable)
            logger.info(
                "%s is compacted from %d to %d: %s",
                log.topic_partition,
                cleanable.first_dirty_offset,
                end_offset,
                self.last_stats,
            )
        except CleanerShutdownError:
            raise
        except LogCleaningAbortedError as e:
            # Somebody else wants the log; others may be waiting.
            logger.info("%s", e)
        except KafkaStorageError as e:
            logger.warning("%s was not compacted: %s", log.topic_partition, e)
            return False
        except OSError as e:
            self._environment.io_failure(log_dir, f"compacting {log.topic_partition}", e)
            return False
        except Exception as e:
            self._give_up(log, e)
            return False
        finally:
            self._manager.done_cleaning(log.topic_partition, log_dir, end_offset)
        return True

    def _delete_old_segments(self) -> None:
        logs = self._manager.deletable_logs()
        try:
            for log in logs:
                try:
                    log.delete_old_segments()
                except KafkaStorageError as e:
                    logger.error("Retention of %s failed: %s", log.topic_partition, e)
                except Exception as e:
                    self._give_up(log, e)
        finally:
            self._manager.done_deleting([log.topic_partition for log in logs])

    def _give_up(self, log: UnifiedLog, error: Exception) -> None:
        logger.warning(
            "%s cannot be compacted and is left alone: %s",
            log.topic_partition,
            error,
            exc_info=True,
        )
        self._manager.mark_partition_uncleanable(log)

    def _check_done(self, topic_partition: TopicPartition) -> None:
        if not self.is_running:
            raise CleanerShutdownError(f"{self.name} is shutting down")
        self._manager.check_cleaning_aborted(topic_partition)
