"""A log used by many threads at once."""

import threading
from collections.abc import Callable
from pathlib import Path

from kafkapy.common.errors import KafkaStorageError, OffsetOutOfRangeError
from kafkapy.common.types import TopicPartition
from kafkapy.storage.fetch_isolation import FetchIsolation
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.testing.faulty_file_system import DiskFault, FaultyFileSystem
from tests.unit.storage.harness import TIMESTAMP, StorageHarness, append, read_all, values_of

TP = TopicPartition("topic", 0)


class Workers:
    """Runs functions until told to stop; a failure of any of them fails the test."""

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.failures: list[BaseException] = []

    def start(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                while not self._stop.is_set():
                    work()
            except BaseException as e:
                self.failures.append(e)

        thread = threading.Thread(target=run)
        self._threads.append(thread)
        thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        assert self.failures == []


def test_readers_see_whole_records_in_order_beside_a_writer(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(segment_bytes=2000, index_interval_bytes=200))
    workers = Workers()

    def read_from_start() -> None:
        high_watermark = log.high_watermark
        found = values_of(log, isolation=FetchIsolation.HIGH_WATERMARK)
        assert found == [f"value {i}" for i in range(len(found))]
        assert len(found) >= high_watermark

    for _ in range(2):
        workers.start(read_from_start)
    for i in range(300):
        append(log, f"value {i}")
        log.maybe_increment_high_watermark(log.log_end_offset_metadata)
    workers.stop()

    assert values_of(log) == [f"value {i}" for i in range(300)]


def test_writers_get_distinct_offsets(storage: StorageHarness) -> None:
    log = storage.open_log(storage.config(segment_bytes=3000))
    offsets: list[list[int]] = [[] for _ in range(4)]

    def write(mine: list[int]) -> None:
        for _ in range(100):
            mine.append(append(log, "a", "b"))

    threads = [threading.Thread(target=write, args=(mine,)) for mine in offsets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(offset for mine in offsets for offset in mine) == list(range(0, 800, 2))
    assert all(mine == sorted(mine) for mine in offsets)


def test_retention_flush_and_reads_go_on_side_by_side(storage: StorageHarness) -> None:
    config = storage.config(
        segment_bytes=1000, retention_ms=-1, retention_bytes=2000, file_delete_delay_ms=0
    )
    log = storage.open_log(config)
    workers = Workers()

    def read() -> None:
        try:
            for record in values_of(log):
                assert record.startswith("value ")
        except OffsetOutOfRangeError:
            return  # retention was faster

    workers.start(read)
    workers.start(lambda: log.flush())
    for i in range(400):
        append(log, f"value {i}")
        log.maybe_increment_high_watermark(log.log_end_offset_metadata)
        if i % 10 == 0:
            log.delete_old_segments()
    workers.stop()

    assert not storage.failures.has_offline_log_dir(storage.log_dir)
    assert log.log_start_offset > 0


def test_deletion_beside_readers_does_not_take_the_directory_offline(
    storage: StorageHarness,
) -> None:
    manager = storage.log_manager(
        default_config=storage.config(segment_bytes=500, file_delete_delay_ms=0)
    )
    manager.startup()
    workers = Workers()
    current: list[UnifiedLog] = [manager.get_or_create_log(TP, is_new=True)]

    def read() -> None:
        try:
            values_of(current[0])
        except (KafkaStorageError, OffsetOutOfRangeError):
            return  # deleted under the reader

    workers.start(read)
    workers.start(lambda: current[0].flush())
    for _ in range(6):
        for i in range(15):
            append(current[0], f"value {i}")
        manager.async_delete(TP)
        current[0] = manager.get_or_create_log(TP, is_new=True)
    workers.stop()

    assert not storage.failures.has_offline_log_dir(storage.log_dir)
    manager.shutdown()


class InterruptedReads(FaultyFileSystem):
    """Something happens, once, while a file of records is read."""

    def __init__(self) -> None:
        super().__init__(sync=False)
        self.meanwhile: Callable[[], None] | None = None

    def check(self, operation: str, path: str) -> DiskFault | None:
        if operation == "read" and path.endswith(".log") and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return super().check(operation, path)


def test_append_while_the_greatest_timestamp_is_looked_up_counts(tmp_path: Path) -> None:
    disk = InterruptedReads()
    storage = StorageHarness(tmp_path, disk)
    config = storage.config(index_interval_bytes=0)
    log = storage.open_log(config)
    append(log, "a", timestamp=TIMESTAMP)
    log.close()
    log = storage.open_log(config, recovery_point=1)
    segment = log.active_segment

    def write() -> None:
        for value in ("b", "c"):
            append(log, value, timestamp=TIMESTAMP + 5)

    writer = threading.Thread(target=write)

    def write_meanwhile() -> None:
        writer.start()
        # It may have to wait until the timestamp is found.
        writer.join(0.2)

    disk.meanwhile = write_meanwhile
    log.fetch_offset_by_timestamp(TIMESTAMP + 1)
    writer.join()
    append(log, "d", timestamp=TIMESTAMP + 1)

    assert segment.max_timestamp_so_far == TIMESTAMP + 5
    found = log.fetch_offset_by_timestamp(TIMESTAMP + 1)
    assert found is not None and found.offset == 1
    assert [record.offset for record in read_all(log)] == [0, 1, 2, 3]
