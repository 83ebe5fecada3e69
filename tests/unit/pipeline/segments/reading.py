"""Logs to read, and their rows."""

from pathlib import Path
from typing import Any

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.pipeline.segments.segment_data_source import SegmentDataSource
from kafkapy.storage.unified_log import UnifiedLog
from tests.helpers.mock_time import MockTime
from tests.helpers.segment_rows import segment_batches
from tests.unit.storage.cleaning import put
from tests.unit.storage.harness import StorageHarness

Row = dict[str, Any]


def rows(path: str | Path, **options: Any) -> list[Row]:
    """All rows, in the order of the splits."""
    return [row for batch in segment_batches(path, **options) for row in batch.to_pylist()]


def offsets(path: str | Path, **options: Any) -> list[int]:
    return [row["offset"] for row in rows(path, **options)]


def splits(path: str | Path, **options: Any) -> list[Any]:
    given = {"path": str(path)} | {name: str(value) for name, value in options.items()}
    source = SegmentDataSource(given)
    return list(source.reader(source.schema()).partitions())


def filled_log(
    storage: StorageHarness, time: MockTime, *, batches: int = 60, name: str = "topic-0"
) -> UnifiedLog:
    """Small segments with many index entries, and batches of every codec, a second apart."""
    log = storage.open_log(storage.config(segment_bytes=1500, index_interval_bytes=100), name=name)
    for number in range(batches):
        codec = list(CompressionType)[number % len(CompressionType)]
        pairs = [(f"k{number}", f"value {number}.{i} " + "x" * (number % 7)) for i in range(4)]
        put(log, time, *pairs, compression=Compression(codec))
        time.sleep(1000)
    assert log.number_of_segments > 2
    return log


def segment_files(log: UnifiedLog) -> list[Path]:
    return sorted(Path(log.dir).glob("*.log"))
