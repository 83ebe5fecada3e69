"""All logs of a broker."""

import logging
import os
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import UUID

from kafkapy.common.errors import KafkaError, KafkaStorageError, LogDirNotFoundError
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Gauge
from kafkapy.common.types import TopicPartition
from kafkapy.storage.broker_topic_stats import BrokerTopicStats
from kafkapy.storage.clean_shutdown_file import UNKNOWN_BROKER_EPOCH
from kafkapy.storage.cleaner_config import CleanerConfig
from kafkapy.storage.file_system import FileSystem
from kafkapy.storage.log_cleaner import LogCleaner
from kafkapy.storage.log_config import LONG_MAX, LogConfig, LogManagerConfig
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel
from kafkapy.storage.log_directory import LogDirectory
from kafkapy.storage.log_factory import open_log
from kafkapy.storage.log_file_utils import (
    DELETE_DIR_SUFFIX,
    FUTURE_DIR_SUFFIX,
    STRAY_DIR_SUFFIX,
    log_delete_dir_name,
    log_dir_name,
    log_stray_dir_name,
    parse_topic_partition_name,
)
from kafkapy.storage.producer_state_manager_config import ProducerStateManagerConfig
from kafkapy.storage.storage_environment import StorageEnvironment
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.utils.scheduler import Scheduler
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

OFFLINE_LOG_DIRECTORY_COUNT = Gauge(
    "kafka.log:type=LogManager,name=OfflineLogDirectoryCount", "Log directories that have failed."
)
LOG_DIRECTORY_OFFLINE = Gauge(
    "kafka.log:type=LogManager,name=LogDirectoryOffline",
    "Whether a log directory has failed.",
    labels=("logDirectory",),
)

TopicOverrides = Mapping[str, str]


class LogManager:
    """Creates, finds, cleans and deletes logs in one or more log directories. Thread-safe.

    A directory that fails takes its own logs offline and no others.

    Ports: kafka.log.LogManager
    """

    def __init__(
        self,
        config: LogManagerConfig,
        default_config: LogConfig,
        *,
        scheduler: Scheduler,
        time: Time,
        log_dir_failure_channel: LogDirFailureChannel,
        file_system: FileSystem,
        broker_topic_stats: BrokerTopicStats,
        metrics: MetricsRegistry,
        cleaner_config: CleanerConfig | None = None,
        rng: random.Random | None = None,
    ) -> None:
        """Makes and locks the directories; raises KafkaError if none can be used, or if one is
        another broker's. Without a `cleaner_config` nothing is compacted."""
        # constant after construction
        self._config = config
        self._environment = StorageEnvironment(
            file_system,
            time,
            scheduler,
            log_dir_failure_channel,
            broker_topic_stats,
            metrics,
            rng or random.Random(),
        )
        self._producer_state_config = ProducerStateManagerConfig(
            config.producer_id_expiration_ms,
            config.producer_id_expiration_check_interval_ms,
            config.transaction_partition_verification_enable,
        )
        self.log_dirs = tuple(os.path.abspath(log_dir) for log_dir in config.log_dirs)
        # Held while logs are made, renamed or taken away, so that no two do it to one partition.
        self._log_creation_or_deletion_lock = threading.RLock()
        self._lock = threading.Lock()
        # guarded by self._lock
        self._current_logs: dict[TopicPartition, UnifiedLog] = {}
        self._default_config = default_config
        self._topic_overrides: dict[str, TopicOverrides] = {}
        # written by startup only
        self._fetch_topic_config: Callable[[str], TopicOverrides] | None = None
        # Replaced, never changed, so that reading needs no lock. Written under self._lock.
        self._live_dirs: dict[str, LogDirectory] = self._open_log_dirs()
        self._shut_down = False
        # constant after construction
        self.cleaner = (
            LogCleaner(cleaner_config, self._live_dirs, self._logs_by_partition, self._environment)
            if cleaner_config is not None and cleaner_config.enable_cleaner
            else None
        )
        metrics.gauge(
            OFFLINE_LOG_DIRECTORY_COUNT, lambda: len(self.log_dirs) - len(self._live_dirs)
        )
        for log_dir in self.log_dirs:
            metrics.gauge(
                LOG_DIRECTORY_OFFLINE,
                lambda log_dir=log_dir: int(log_dir not in self._live_dirs),  # type: ignore[misc]
                logDirectory=log_dir,
            )

    @property
    def live_log_dirs(self) -> tuple[str, ...]:
        return tuple(self._live_dirs)

    @property
    def default_config(self) -> LogConfig:
        return self._default_config

    def is_log_dir_online(self, log_dir: str) -> bool:
        if log_dir not in self.log_dirs:
            raise LogDirNotFoundError(f"{log_dir} is not in log.dirs")
        return log_dir in self._live_dirs

    # --- start and stop

    def startup(
        self,
        topic_config_overrides: Mapping[str, TopicOverrides] | None = None,
        *,
        fetch_topic_config: Callable[[str], TopicOverrides] | None = None,
    ) -> None:
        """Loads all logs, then begins with the background tasks.

        `fetch_topic_config` gives the settings of a topic whose log is made later on; without it
        only what `update_topic_config` has told counts.
        """
        self._fetch_topic_config = fetch_topic_config
        with self._lock:
            self._topic_overrides = dict(topic_config_overrides or {})
        self._load_logs()
        self._schedule_tasks()
        if self.cleaner is not None:
            self.cleaner.startup()

    def shutdown(self, broker_epoch: int = UNKNOWN_BROKER_EPOCH) -> None:
        """Flushes and closes all logs and leaves the directories marked as clean. Idempotent."""
        with self._lock:
            if self._shut_down:
                return
            self._shut_down = True
        if self.cleaner is not None:
            self.cleaner.shutdown()
        self._environment.metrics.remove(OFFLINE_LOG_DIRECTORY_COUNT)
        directories = tuple(self._live_dirs.values())
        threads = [
            threading.Thread(
                target=self._shut_down_dir,
                args=(directory, broker_epoch),
                name=f"log-closing-{directory.path}",
            )
            for directory in directories
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for directory in directories:
            directory.close()

    def _shut_down_dir(self, directory: LogDirectory, broker_epoch: int) -> None:
        logs = self._logs_in(directory.path)
        try:
            with self._pool(directory) as pool:
                list(pool.map(_flush_and_close, logs))
            if directory.is_loaded:
                directory.write_recovery_points(logs)
                directory.write_log_start_offsets(logs)
                with self._environment.io_errors(directory.path, "marking a clean shutdown"):
                    directory.mark_clean_shutdown(broker_epoch)
        except KafkaStorageError as e:
            logger.error("%s was not shut down cleanly: %s", directory.path, e)

    # --- logs

    def get_log(self, topic_partition: TopicPartition) -> UnifiedLog | None:
        return self._current_logs.get(topic_partition)

    def all_logs(self) -> tuple[UnifiedLog, ...]:
        with self._lock:
            return tuple(self._current_logs.values())

    def get_or_create_log(
        self,
        topic_partition: TopicPartition,
        *,
        is_new: bool = False,
        topic_id: UUID | None = None,
    ) -> UnifiedLog:
        """Raises KafkaStorageError if the log cannot be made, or may be in an offline directory.

        A partition that is new cannot be in an offline directory.
        """
        log = self._current_logs.get(topic_partition)
        if log is not None:
            return log
        with self._log_creation_or_deletion_lock:
            log = self._current_logs.get(topic_partition)
            if log is not None:
                return log
            if not is_new and len(self._live_dirs) < len(self.log_dirs):
                raise KafkaStorageError(
                    f"No log is made for {topic_partition}: it may be in a log directory that is "
                    "offline"
                )
            log = self._create_log(topic_partition, topic_id)
            self._add_log(log)
            return log

    def async_delete(self, topic_partition: TopicPartition, *, is_stray: bool = False) -> None:
        """Takes a log out of use; its files go after file.delete.delay.ms (a stray's stay)."""
        with self._log_creation_or_deletion_lock:
            with self._lock:
                log = self._current_logs.pop(topic_partition, None)
            if log is None:
                if len(self._live_dirs) < len(self.log_dirs):
                    raise KafkaStorageError(
                        f"The log of {topic_partition} may be in a directory that is offline"
                    )
                return
            if self.cleaner is not None:
                self.cleaner.manager.abort_cleaning(topic_partition)
                self.cleaner.manager.update_checkpoints(log.parent_dir, remove=topic_partition)
            log.remove_metrics()
            name = (log_stray_dir_name if is_stray else log_delete_dir_name)(topic_partition)
            log.rename_dir(name, reinitialize=False)
            # A new log of that name must not begin with the old one's offsets.
            directory = self._live_dirs.get(log.parent_dir)
            if directory is not None:
                self._checkpoint_dir(directory)
        if is_stray:
            log.close()
            logger.warning("%s is kept as %s", topic_partition, log.dir)
        else:
            logger.info("%s will be deleted; its files are in %s", topic_partition, log.dir)
            self._delete_later(log.delete)

    def truncate_to(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Cuts logs and saves that at once, for what was cut off must not come back."""
        directories = set()
        for topic_partition, offset in offsets.items():
            log = self._current_logs.get(topic_partition)
            if log is None:
                continue
            if offset >= log.active_segment.base_offset:
                # The active segment is never compacted.
                is_cut = log.truncate_to(offset)
            else:
                with self._cleaning_paused(log):
                    is_cut = log.truncate_to(offset)
            if is_cut:
                directories.add(log.parent_dir)
        for path in directories:
            if (directory := self._live_dirs.get(path)) is not None:
                self._checkpoint_dir(directory)

    def truncate_fully_and_start_at(self, topic_partition: TopicPartition, offset: int) -> None:
        log = self._current_logs.get(topic_partition)
        if log is None:
            return
        with self._cleaning_paused(log):
            log.truncate_fully_and_start_at(offset)
        if (directory := self._live_dirs.get(log.parent_dir)) is not None:
            self._checkpoint_dir(directory)

    def handle_log_dir_failure(self, log_dir: str) -> None:
        """Forgets the logs of a directory that has failed."""
        with self._log_creation_or_deletion_lock:
            with self._lock:
                directory = self._live_dirs.get(log_dir)
                self._live_dirs = {p: d for p, d in self._live_dirs.items() if p != log_dir}
                lost = [log for log in self._current_logs.values() if log.parent_dir == log_dir]
                for log in lost:
                    del self._current_logs[log.topic_partition]
            if self.cleaner is not None:
                self.cleaner.manager.handle_log_dir_failure(log_dir)
            for log in lost:
                log.remove_metrics()
                log.close_handlers()
            if directory is not None:
                directory.close()
        logger.warning(
            "The log directory %s is offline, with the logs of %s",
            log_dir,
            ", ".join(str(log.topic_partition) for log in lost) or "no partition",
        )

    # --- configuration

    def update_topic_config(self, topic: str, overrides: TopicOverrides) -> None:
        with self._lock:
            self._topic_overrides[topic] = dict(overrides)
            config = LogConfig.from_overrides(self._default_config, overrides)
            logs = [log for tp, log in self._current_logs.items() if tp.topic == topic]
        for log in logs:
            self._update_config(log, config)

    def reconfigure_default_log_config(self, default_config: LogConfig) -> None:
        """The broker's settings have changed: so have those of all topics without their own."""
        with self._lock:
            self._default_config = default_config
            configs = [
                (log, self._topic_config_locked(log.topic_partition.topic))
                for log in self._current_logs.values()
            ]
        for log, config in configs:
            self._update_config(log, config)

    def reconfigure_cleaner(self, config: CleanerConfig) -> None:
        if self.cleaner is not None:
            self.cleaner.reconfigure(config)

    def _update_config(self, log: UnifiedLog, config: LogConfig) -> None:
        was_compact = log.config.compact
        log.update_config(config)
        if self.cleaner is not None and was_compact and not config.compact:
            self.cleaner.manager.abort_cleaning(log.topic_partition)

    def reconfigure_producer_state(self, config: LogManagerConfig) -> None:
        """What of producer state can be changed holds for all logs from now on."""
        current = self._producer_state_config
        current.producer_id_expiration_ms = config.producer_id_expiration_ms
        current.transaction_verification_enabled = config.transaction_partition_verification_enable

    # --- background tasks

    def cleanup_logs(self) -> None:
        """Applies retention to every log that is not compacted: the cleaner sees to those."""
        if self.cleaner is None:
            logs = tuple(log for log in self.all_logs() if not log.config.compact)
            self._for_each_log("Retention", lambda log: log.delete_old_segments(), logs)
            return
        logs = self.cleaner.manager.pause_cleaning_for_non_compacted_partitions()
        try:
            self._for_each_log("Retention", lambda log: log.delete_old_segments(), logs)
        finally:
            self.cleaner.manager.resume_cleaning(log.topic_partition for log in logs)

    def flush_dirty_logs(self) -> None:
        """Forces logs to disk whose oldest unflushed data is flush.ms old."""
        now_ms = self._environment.time.milliseconds()

        def maybe_flush(log: UnifiedLog) -> None:
            if now_ms - log.last_flush_ms >= log.config.flush_ms:
                log.flush()

        self._for_each_log("Flushing", maybe_flush, self.all_logs())

    def checkpoint_log_recovery_offsets(self) -> None:
        self._for_each_dir(lambda directory, logs: directory.write_recovery_points(logs))

    def checkpoint_log_start_offsets(self) -> None:
        self._for_each_dir(lambda directory, logs: directory.write_log_start_offsets(logs))

    def _schedule_tasks(self) -> None:
        config = self._config
        for name, task, period_ms in (
            ("kafka-log-retention", self.cleanup_logs, config.log_retention_check_interval_ms),
            ("kafka-log-flusher", self.flush_dirty_logs, config.log_flush_scheduler_interval_ms),
            (
                "kafka-recovery-point-checkpoint",
                self.checkpoint_log_recovery_offsets,
                config.log_flush_offset_checkpoint_interval_ms,
            ),
            (
                "kafka-log-start-offset-checkpoint",
                self.checkpoint_log_start_offsets,
                config.log_flush_start_offset_checkpoint_interval_ms,
            ),
        ):
            if period_ms < LONG_MAX:
                self._environment.scheduler.schedule(
                    name, task, delay_ms=config.log_initial_task_delay_ms, period_ms=period_ms
                )

    @contextmanager
    def _cleaning_paused(self, log: UnifiedLog) -> Iterator[None]:
        """While a log is cut; what was compacted of it and is no more counts as dirty again."""
        if self.cleaner is None:
            yield
            return
        manager = self.cleaner.manager
        manager.abort_and_pause_cleaning(log.topic_partition)
        try:
            yield
            manager.maybe_truncate_checkpoint(log, log.active_segment.base_offset)
        finally:
            manager.resume_cleaning((log.topic_partition,))

    def _for_each_log(
        self, doing: str, task: Callable[[UnifiedLog], object], logs: Iterable[UnifiedLog]
    ) -> None:
        """What goes wrong with one log does not keep the task from the others."""
        for log in logs:
            try:
                task(log)
            except KafkaStorageError as e:
                logger.error("%s of %s failed: %s", doing, log.topic_partition, e)
            except Exception:
                # Damaged records, for example.
                logger.exception("%s of %s failed", doing, log.topic_partition)

    def _for_each_dir(self, task: Callable[[LogDirectory, list[UnifiedLog]], None]) -> None:
        for directory in tuple(self._live_dirs.values()):
            try:
                self._environment.ensure_online(directory.path)
                task(directory, self._logs_in(directory.path))
            except KafkaStorageError as e:
                logger.error("The checkpoint in %s failed: %s", directory.path, e)

    def _checkpoint_dir(self, directory: LogDirectory) -> None:
        logs = self._logs_in(directory.path)
        directory.write_recovery_points(logs)
        directory.write_log_start_offsets(logs)

    # --- making and loading

    def _open_log_dirs(self) -> dict[str, LogDirectory]:
        canonical = [os.path.realpath(log_dir) for log_dir in self.log_dirs]
        if len(set(canonical)) < len(canonical):
            raise KafkaError(f"log.dirs names a directory twice: {', '.join(self.log_dirs)}")
        opened: dict[str, LogDirectory] = {}
        failures: dict[str, OSError] = {}
        try:
            for log_dir in self.log_dirs:
                try:
                    opened[log_dir] = LogDirectory(log_dir, self._environment)
                except OSError as e:
                    failures[log_dir] = e
        except KafkaError:
            for directory in opened.values():
                directory.close()
            raise
        if not opened:
            reasons = (f"{log_dir}: {e.strerror or e}" for log_dir, e in failures.items())
            raise KafkaError(f"No directory of log.dirs can be used: {', '.join(reasons)}")
        for log_dir, error in failures.items():
            self._environment.log_dir_failure_channel.maybe_add_offline_log_dir(
                log_dir, f"it cannot be opened: {error.strerror or error}"
            )
        return opened

    def _create_log(self, topic_partition: TopicPartition, topic_id: UUID | None) -> UnifiedLog:
        config = self._fetch_config(topic_partition.topic)
        for directory in self._next_log_dirs():
            try:
                path = directory.create_partition_dir(log_dir_name(topic_partition))
                return open_log(
                    path,
                    config,
                    self._environment,
                    topic_id=topic_id,
                    producer_state_config=self._producer_state_config,
                )
            except OSError as e:
                self._environment.io_failure(directory.path, f"making {topic_partition}", e)
        raise KafkaStorageError(f"No log directory is left for {topic_partition}")

    def _next_log_dirs(self) -> list[LogDirectory]:
        """Those with the fewest logs first."""
        counts = dict.fromkeys(self._live_dirs, 0)
        for log in self.all_logs():
            if log.parent_dir in counts:
                counts[log.parent_dir] += 1
        online = [
            directory
            for path, directory in self._live_dirs.items()
            if not self._environment.log_dir_failure_channel.has_offline_log_dir(path)
        ]
        return sorted(online, key=lambda directory: counts[directory.path])

    def _load_logs(self) -> None:
        start_ns = self._environment.time.nanoseconds()
        failures: list[BaseException] = []
        threads = [
            threading.Thread(
                target=self._load_logs_in,
                args=(directory, failures),
                name=f"log-loading-{directory.path}",
            )
            for directory in self._live_dirs.values()
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]
        logger.info(
            "Loaded %d logs in %d ms",
            len(self._current_logs),
            (self._environment.time.nanoseconds() - start_ns) // 1_000_000,
        )

    def _load_logs_in(self, directory: LogDirectory, failures: list[BaseException]) -> None:
        try:
            with self._environment.io_errors(directory.path, "loading logs"):
                had_clean_shutdown = directory.take_clean_shutdown()
                recovery_points = directory.read_recovery_points()
                log_start_offsets = directory.read_log_start_offsets()
                paths = list(self._loadable(directory.partition_dirs()))
                if not had_clean_shutdown and paths:
                    logger.info("%s was not shut down cleanly: recovering logs", directory.path)

                def load(path: str) -> None:
                    topic_partition = parse_topic_partition_name(path)
                    self._add_log(
                        open_log(
                            path,
                            self._topic_config(topic_partition.topic),
                            self._environment,
                            log_start_offset=log_start_offsets.get(topic_partition, 0),
                            recovery_point=recovery_points.get(topic_partition, 0),
                            had_clean_shutdown=had_clean_shutdown,
                            producer_state_config=self._producer_state_config,
                        )
                    )

                with self._pool(directory) as pool:
                    list(pool.map(load, paths))
                directory.is_loaded = True
        except KafkaStorageError as e:
            # The directory is offline; the others go on.
            logger.error("The logs in %s could not be loaded: %s", directory.path, e)
        except BaseException as e:
            failures.append(e)

    def _loadable(self, paths: Iterable[str]) -> Iterator[str]:
        for path in paths:
            if path.endswith(DELETE_DIR_SUFFIX):
                self._delete_later(lambda path=path: self._remove_tree(path))  # type: ignore[misc]
            elif path.endswith(STRAY_DIR_SUFFIX):
                logger.warning("%s belongs to no partition of this broker and is kept", path)
            elif path.endswith(FUTURE_DIR_SUFFIX):
                logger.warning("%s is an unfinished move between log directories", path)
            else:
                yield path

    def _add_log(self, log: UnifiedLog) -> None:
        with self._lock:
            other = self._current_logs.setdefault(log.topic_partition, log)
        if other is not log:
            raise KafkaError(
                f"{log.topic_partition} is in two log directories, {other.dir} and {log.dir}: "
                "move one of them away"
            )
        log.register_metrics()

    def _delete_later(self, delete: Callable[[], None]) -> None:
        self._environment.scheduler.schedule_once(
            "kafka-delete-logs", delete, self._default_config.file_delete_delay_ms
        )

    def _remove_tree(self, path: str) -> None:
        with self._environment.io_errors(os.path.dirname(path), f"deleting {path}"):
            self._environment.file_system.remove_tree(path)

    def _fetch_config(self, topic: str) -> LogConfig:
        """The settings of a topic whose log is about to be made."""
        if self._fetch_topic_config is not None:
            overrides = dict(self._fetch_topic_config(topic))
            with self._lock:
                self._topic_overrides[topic] = overrides
        return self._topic_config(topic)

    def _topic_config(self, topic: str) -> LogConfig:
        with self._lock:
            return self._topic_config_locked(topic)

    def _topic_config_locked(self, topic: str) -> LogConfig:
        overrides = self._topic_overrides.get(topic)
        if not overrides:
            return self._default_config
        return LogConfig.from_overrides(self._default_config, overrides)

    def _logs_by_partition(self) -> dict[TopicPartition, UnifiedLog]:
        with self._lock:
            return dict(self._current_logs)

    def _logs_in(self, log_dir: str) -> list[UnifiedLog]:
        return [log for log in self.all_logs() if log.parent_dir == log_dir]

    def _pool(self, directory: LogDirectory) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(
            self._config.num_recovery_threads_per_data_dir,
            thread_name_prefix=f"log-recovery-{directory.path}",
        )


def _flush_and_close(log: UnifiedLog) -> None:
    log.flush(force_active_segment=True)
    log.close()
