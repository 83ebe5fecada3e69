"""Log compaction: keeping the last record of each key."""

import logging
import threading
from collections.abc import Iterable
from dataclasses import replace

from kafkapy.common.metrics.stats import Gauge
from kafkapy.storage.cleaner_config import CleanerConfig
from kafkapy.storage.cleaner_thread import CleanerThread
from kafkapy.storage.log_cleaner_manager import LogCleanerManager, Logs
from kafkapy.storage.storage_environment import StorageEnvironment
from kafkapy.utils.throttler import Throttler

logger = logging.getLogger(__name__)

MAX_BUFFER_UTILIZATION_PERCENT = Gauge(
    "kafka.log:type=LogCleaner,name=max-buffer-utilization-percent",
    "How full the memory for keys was in the last compaction of any thread.",
)
CLEANER_RECOPY_PERCENT = Gauge(
    "kafka.log:type=LogCleaner,name=cleaner-recopy-percent",
    "How much of what the last compactions read they wrote again.",
)
MAX_CLEAN_TIME_SECS = Gauge(
    "kafka.log:type=LogCleaner,name=max-clean-time-secs",
    "How long the last compaction of any thread took.",
)
MAX_COMPACTION_DELAY_SECS = Gauge(
    "kafka.log:type=LogCleaner,name=max-compaction-delay-secs",
    "By how much a log was beyond max.compaction.lag.ms when last looked at.",
)
DEAD_THREAD_COUNT = Gauge(
    "kafka.log:type=LogCleaner,name=DeadThreadCount",
    "Compaction threads that have ended although nobody asked them to.",
)
_METRICS = (
    MAX_BUFFER_UTILIZATION_PERCENT,
    CLEANER_RECOPY_PERCENT,
    MAX_CLEAN_TIME_SECS,
    MAX_COMPACTION_DELAY_SECS,
    DEAD_THREAD_COUNT,
)


class LogCleaner:
    """The threads that compact logs with cleanup.policy=compact. Thread-safe.

    Everybody who moves, cuts or deletes such a log asks `manager` to keep them away meanwhile.

    Ports: kafka.log.LogCleaner
    """

    def __init__(
        self,
        config: CleanerConfig,
        log_dirs: Iterable[str],
        logs: Logs,
        environment: StorageEnvironment,
    ) -> None:
        # constant after construction
        self.manager = LogCleanerManager(log_dirs, logs, environment)
        self._environment = environment
        self._throttler = Throttler(config.max_io_bytes_per_second, environment.time)
        self._lock = threading.Lock()
        # guarded by self._lock
        self._config = config
        self._is_running = False
        # Replaced, never changed, so that metrics need no lock. Written under self._lock.
        self._threads: tuple[CleanerThread, ...] = ()
        self._register_metrics()

    def startup(self) -> None:
        with self._lock:
            self._is_running = True
            self._start_threads_locked()

    def shutdown(self) -> None:
        """Returns when no log is being compacted any more. Idempotent."""
        with self._lock:
            self._is_running = False
            self._stop_threads_locked()
            for metric in _METRICS:
                self._environment.metrics.remove(metric)
            self.manager.remove_metrics()

    def reconfigure(self, config: CleanerConfig) -> None:
        """Stops what is going on and begins anew, unless nothing has changed or begun."""
        with self._lock:
            # That one is not dynamic.
            config = replace(config, enable_cleaner=self._config.enable_cleaner)
            if config == self._config:
                return
            self._config = config
            self._throttler.update_desired_rate_per_sec(config.max_io_bytes_per_second)
            if self._is_running:
                self._stop_threads_locked()
                self._start_threads_locked()

    def _start_threads_locked(self) -> None:
        self._threads = tuple(
            CleanerThread(
                thread_id,
                self._config,
                self.manager,
                self._throttler,
                self._environment,
                on_failure=self._on_thread_failure,
            )
            for thread_id in range(self._config.num_threads)
        )
        for thread in self._threads:
            thread.start()

    def _stop_threads_locked(self) -> None:
        for thread in self._threads:
            thread.initiate_shutdown()
        for thread in self._threads:
            thread.await_shutdown()
        self._threads = ()

    def _on_thread_failure(self, error: BaseException) -> None:
        logger.critical(
            "A compaction thread has died (%r): until the broker is restarted logs grow", error
        )

    def _register_metrics(self) -> None:
        metrics = self._environment.metrics
        metrics.gauge(MAX_BUFFER_UTILIZATION_PERCENT, self._max_buffer_utilization_percent)
        metrics.gauge(CLEANER_RECOPY_PERCENT, self._recopy_percent)
        metrics.gauge(MAX_CLEAN_TIME_SECS, self._max_clean_time_secs)
        metrics.gauge(MAX_COMPACTION_DELAY_SECS, self._max_compaction_delay_secs)
        metrics.gauge(DEAD_THREAD_COUNT, lambda: sum(t.is_failed for t in self._threads))

    def _max_buffer_utilization_percent(self) -> int:
        return int(max((100 * t.last_stats.buffer_utilization for t in self._threads), default=0))

    def _recopy_percent(self) -> int:
        stats = [thread.last_stats for thread in self._threads]
        read = sum(s.bytes_read for s in stats)
        return int(100 * sum(s.bytes_written for s in stats) / max(read, 1))

    def _max_clean_time_secs(self) -> int:
        return int(max((thread.last_stats.elapsed_secs for thread in self._threads), default=0))

    def _max_compaction_delay_secs(self) -> int:
        delays = (thread.last_pre_clean_stats.max_compaction_delay_ms for thread in self._threads)
        return max(delays, default=0) // 1000
