"""Segment files as rows: each record once, up to where the log is sound and decided."""

import os
from dataclasses import fields
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import BinaryType, LongType, StructField, StructType

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.columnar.record_schema import spark_schema
from kafkapy.pipeline.pipeline_errors import CorruptDataError, DataLossError
from kafkapy.pipeline.segments.segment_data_source import SegmentDataSource
from kafkapy.pipeline.segments.segment_options import SegmentOptions
from kafkapy.pipeline.segments.segment_planner import SegmentPlanner
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel
from kafkapy.storage.offset_checkpoint_file import OffsetCheckpointFile
from kafkapy.storage.unified_log import UnifiedLog
from tests.helpers.mock_time import MockTime
from tests.helpers.segment_rows import segment_batches
from tests.unit.pipeline.segments.reading import (
    filled_log,
    offsets,
    rows,
    segment_files,
    splits,
)
from tests.unit.storage.cleaning import (
    TransactionalProducer,
    compacted_log,
    data_records,
    put,
    put_each,
    read_committed,
    roll_and_clean,
)
from tests.unit.storage.harness import StorageHarness, append


def write_checkpoint(storage: StorageHarness, name: str, offset: int) -> None:
    OffsetCheckpointFile(
        f"{storage.log_dir}/{name}",
        file_system=storage.file_system,
        log_dir_failure_channel=LogDirFailureChannel(),
    ).write({TopicPartition("topic", 0): offset})


def state_of(directory: str) -> dict[str, tuple[int, int, bytes]]:
    return {
        str(path): (path.stat().st_mtime_ns, path.stat().st_ino, path.read_bytes())
        for path in Path(directory).rglob("*")
        if path.is_file()
    }


def damage(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


def time_indexes_of(log: UnifiedLog) -> list[Path]:
    """Of a log that nobody writes any more."""
    log.close()
    return list(Path(log.dir).glob("*.timeindex"))


class TestRows:
    @pytest.mark.parametrize("closed", [False, True])
    def test_rows_are_the_log_s_records(
        self, storage: StorageHarness, time: MockTime, closed: bool
    ) -> None:
        log = filled_log(storage, time)
        expected = [
            (record.offset, record.timestamp, record.key, record.value)
            for record in data_records(log)
        ]
        if closed:
            log.close()

        found = rows(storage.log_dir)

        assert [
            (row["offset"], round(row["timestamp"].timestamp() * 1000), row["key"], row["value"])
            for row in found
        ] == expected
        assert {(row["topic"], row["partition"], row["timestampType"]) for row in found} == {
            ("topic", 0, 0)
        }

    @pytest.mark.parametrize("split_bytes", [1, 250, 700, 1499, 1501, 10_000])
    def test_splits_hold_each_record_once(
        self, storage: StorageHarness, time: MockTime, split_bytes: int
    ) -> None:
        log = filled_log(storage, time)

        found = offsets(storage.log_dir, splitBytes=split_bytes)

        assert found == list(range(log.log_end_offset))

    def test_any_range_and_split_size(self, storage: StorageHarness, time: MockTime) -> None:
        log = filled_log(storage, time, batches=30)
        end = log.log_end_offset

        @settings(derandomize=True, deadline=None, max_examples=60)
        @given(
            split_bytes=st.integers(1, 4000), first=st.integers(0, end), last=st.integers(0, end)
        )
        def check(split_bytes: int, first: int, last: int) -> None:
            found = offsets(
                storage.log_dir,
                splitBytes=split_bytes,
                startingOffsets={"topic": {"0": first}},
                endingOffsets={"topic": {"0": last}},
            )
            assert found == list(range(first, last))

        check()

    def test_small_segments_share_a_split_and_large_ones_are_cut(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        log = filled_log(storage, time)

        assert len(splits(storage.log_dir)) == 1
        assert len(splits(storage.log_dir, splitBytes=1500)) == log.number_of_segments
        assert len(splits(storage.log_dir, splitBytes=200)) > 3 * log.number_of_segments

    @pytest.mark.parametrize(
        "content",
        [None, b"", b"\0" * 80, b"\0\0\0\1\0\0\0\1" * 9, b"\0\0\0\1\x80\0\0\0", b"\1" * 13],
    )
    def test_a_missing_or_bad_index_costs_splits_but_no_rows(
        self, storage: StorageHarness, time: MockTime, content: bytes | None
    ) -> None:
        log = filled_log(storage, time)
        log.close()
        for index in Path(log.dir).glob("*.index"):
            index.unlink()
            if content is not None:
                index.write_bytes(content)

        assert offsets(storage.log_dir, splitBytes=500) == list(range(log.log_end_offset))
        assert offsets(storage.log_dir, startingOffsets={"topic": {"0": 50}})[0] == 50

    def test_a_schema_names_the_columns(self, storage: StorageHarness, time: MockTime) -> None:
        filled_log(storage, time)
        columns = StructType([StructField("offset", LongType()), StructField("key", BinaryType())])

        found = segment_batches(storage.log_dir, columns=columns)

        assert found[0].schema.names == ["offset", "key"]
        assert found[0].to_pylist()[5] == {"offset": 5, "key": b"k1"}

    def test_a_partition_directory_and_a_single_file(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        log = filled_log(storage, time)
        second = segment_files(log)[1]

        assert offsets(log.dir) == list(range(log.log_end_offset))
        assert offsets(second) == list(range(int(second.stem), int(segment_files(log)[2].stem)))

    def test_nothing_of_the_directory_changes(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        log = filled_log(storage, time)
        TransactionalProducer(log, time, 7).put(("k", "v"))
        before = state_of(storage.log_dir)

        rows(storage.log_dir, isolationLevel="read_committed", startingTimestamp=1, splitBytes=300)
        rows(storage.log_dir, view="batches")

        assert state_of(storage.log_dir) == before

    def test_spark_s_empty_share_gives_no_rows(self, tmp_path: Path) -> None:
        source = SegmentDataSource({"path": str(tmp_path)})
        reader = source.reader(source.schema())

        assert reader.partitions() == []
        assert list(reader.read(InputPartition(None))) == []

    def test_compacted_logs_keep_their_gaps(self, storage: StorageHarness, time: MockTime) -> None:
        log = compacted_log(storage, segment_bytes=2000, index_interval_bytes=100)
        put_each(log, time, [(f"k{i % 7}", f"v{i}") for i in range(100)])
        roll_and_clean(log, time)
        expected = [record.offset for record in data_records(log)]

        assert expected[0] > 0
        assert offsets(storage.log_dir, splitBytes=150) == expected


class TestBounds:
    def test_reading_stops_at_the_checkpointed_high_watermark(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        log = filled_log(storage, time)
        write_checkpoint(storage, "replication-offset-checkpoint", 100)

        assert offsets(storage.log_dir) == list(range(100))
        assert offsets(log.dir) == list(range(100))
        assert offsets(storage.log_dir, respectHighWatermark=False)[-1] == log.log_end_offset - 1

    def test_reading_starts_at_the_checkpointed_log_start(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        log = filled_log(storage, time)
        write_checkpoint(storage, "log-start-offset-checkpoint", 33)

        assert offsets(storage.log_dir) == list(range(33, log.log_end_offset))
        assert offsets(storage.log_dir, startingOffsets={"topic": {"0": 3}})[0] == 33

    def test_timestamps_stand_for_the_first_record_that_is_not_older(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        begin = time.milliseconds()
        log = filled_log(storage, time)
        end = log.log_end_offset

        def since(first: int | None = None, last: int | None = None) -> list[int]:
            options = {"startingTimestamp": first, "endingTimestamp": last}
            return offsets(
                storage.log_dir, **{name: at for name, at in options.items() if at is not None}
            )

        assert since(begin) == list(range(end))
        assert since(begin + 10_000) == list(range(40, end))
        assert since(begin + 9_001, begin + 12_000) == list(range(40, 48))
        assert since(begin + 60_000) == []
        assert since(None, begin + 60_000) == list(range(end))

    def test_timestamps_of_records_before_the_log_start_do_not_count(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        log = storage.open_log(storage.config())
        for timestamp in (100, 10, 20, 200):
            append(log, "value", timestamp=timestamp)
        write_checkpoint(storage, "log-start-offset-checkpoint", 1)

        assert offsets(storage.log_dir, startingTimestamp=50) == [3]
        assert offsets(storage.log_dir, endingTimestamp=50) == [1, 2]

    def test_timestamps_are_found_without_time_indexes(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        begin = time.milliseconds()
        for index in time_indexes_of(filled_log(storage, time)):
            index.unlink()

        assert offsets(storage.log_dir, startingTimestamp=begin + 10_000)[0] == 40

    def test_timestamps_are_found_in_spite_of_time_indexes_that_were_cut(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        begin = time.milliseconds()
        for index in time_indexes_of(filled_log(storage, time)):
            os.truncate(index, 12)

        for second in range(60):
            first = offsets(storage.log_dir, startingTimestamp=begin + 1000 * second)[0]
            assert first == 4 * second


class TestTransactions:
    def transactions(self, storage: StorageHarness, time: MockTime) -> UnifiedLog:
        """Two producers, one of which aborts, across several segments; the last one is open."""
        log = storage.open_log(storage.config(segment_bytes=1500, index_interval_bytes=100))
        committing = TransactionalProducer(log, time, 1)
        aborting = TransactionalProducer(log, time, 2)
        for number in range(12):
            committing.put((f"c{number}", "kept"), (f"d{number}", "kept"))
            aborting.put((f"a{number}", "lost"))
            put(log, time, (f"p{number}", "plain"))
            if number % 3 == 0:
                committing.commit()
            if number % 4 == 1:
                aborting.abort()
            elif number % 4 == 3:
                aborting.commit()
        committing.commit()
        return log

    @pytest.mark.parametrize("split_bytes", [1, 400, 100_000])
    def test_committed_records_are_those_of_a_consumer(
        self, storage: StorageHarness, time: MockTime, split_bytes: int
    ) -> None:
        log = self.transactions(storage, time)
        expected = [record.offset for record in read_committed(log)]
        everything = [record.offset for record in data_records(log)]
        assert 0 < len(expected) < len(everything)

        options = {"splitBytes": split_bytes}

        assert offsets(storage.log_dir, isolationLevel="read_committed", **options) == expected
        assert offsets(storage.log_dir, **options) == everything

    @pytest.mark.parametrize("lost", ["*.snapshot", "*.txnindex", "*.*index"])
    def test_an_open_transaction_ends_reading(
        self, storage: StorageHarness, time: MockTime, lost: str
    ) -> None:
        log = self.transactions(storage, time)
        TransactionalProducer(log, time, 3).put(("open", "one"))
        put(log, time, ("after", "it"))
        log.update_high_watermark(log.log_end_offset)
        expected = [record.offset for record in read_committed(log)]
        log.close()
        active = max(Path(log.dir).glob("*.log")).stem
        for file in Path(log.dir).glob(lost):
            # Of the transaction indexes only the last can lack anything after a crash.
            if lost == "*.snapshot" or file.stem >= active:
                file.unlink()

        found = offsets(storage.log_dir, isolationLevel="read_committed")

        assert found == expected
        assert log.log_end_offset - 1 not in found

    def test_a_marker_above_the_high_watermark_decides_nothing(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        log = storage.open_log()
        put(log, time, ("a", "plain"))
        producer = TransactionalProducer(log, time, 1)
        producer.put(("b", "undecided"))
        aborted = producer.abort()
        put(log, time, ("c", "plain"))

        for high_watermark, expected in ((aborted, [0]), (aborted + 1, [0]), (aborted + 2, [0, 3])):
            write_checkpoint(storage, "replication-offset-checkpoint", high_watermark)
            found = offsets(storage.log_dir, isolationLevel="read_committed")
            assert found == expected


class TestTornTail:
    def test_a_file_cut_anywhere_in_its_last_batch_ends_before_it(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        log = storage.open_log()
        append(log, "a", "b")
        whole = log.size
        append(log, "c", "d")
        log.close()
        (path,) = segment_files(log)
        content = path.read_bytes()

        for size in range(whole, len(content)):
            path.write_bytes(content[:size])
            assert offsets(storage.log_dir) == [0, 1], size

    @pytest.mark.parametrize(
        "tail", [b"\0" * 5000, b"\0" * 7, "a batch of which a page is missing"]
    )
    def test_what_a_torn_write_leaves_ends_reading(
        self, storage: StorageHarness, time: MockTime, tail: bytes | str
    ) -> None:
        log = filled_log(storage, time)
        end = log.log_end_offset
        put(log, time, ("k", "x" * 500))
        log.close()
        path = segment_files(log)[-1]
        if isinstance(tail, str):
            damage(path, path.stat().st_size - 100, b"\0" * 100)
            expected = list(range(end))
        else:
            with path.open("ab") as file:
                file.write(tail)
            expected = list(range(end + 1))

        assert offsets(storage.log_dir) == expected
        assert offsets(storage.log_dir, splitBytes=400) == expected

    def test_a_cut_inside_the_log_is_corruption(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        log = filled_log(storage, time)
        log.close()
        second = segment_files(log)[1]
        os.truncate(second, second.stat().st_size - 5)

        with pytest.raises(CorruptDataError, match=rf"{second}: at byte \d+: topic-0: the batch"):
            offsets(storage.log_dir)

        assert len(offsets(storage.log_dir, failOnCorruption=False)) == log.log_end_offset - 4


class TestCorruption:
    @pytest.mark.parametrize("active", [False, True])
    def test_a_corrupt_batch_is_an_error_or_left_out(
        self, storage: StorageHarness, time: MockTime, active: bool
    ) -> None:
        log = filled_log(storage, time)
        segment = log.segments[-1 if active else 1]
        batch = list(segment.log.batches())[0 if active else 2]
        path, offset = segment.log.path, batch.base_offset
        log.close()
        damage(Path(path), batch.position + 70, b"\xff")

        with pytest.raises(CorruptDataError, match=rf"^{path}: topic-0: .* offset {offset} .*crc"):
            offsets(storage.log_dir)

        found = offsets(storage.log_dir, failOnCorruption=False)
        assert found == [each for each in range(log.log_end_offset) if not 0 <= each - offset < 4]

    def test_unchecked_crcs_leave_the_row_as_it_is(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        log = storage.open_log()
        append(log, "good")
        append(log, "next")
        log.close()
        (path,) = segment_files(log)
        damage(path, path.read_bytes().index(b"good"), b"evil")

        assert [row["value"] for row in rows(storage.log_dir, checkCrcs=False)] == [
            b"evil",
            b"next",
        ]

    @pytest.mark.parametrize("length", [b"\0\0\0\1", b"\x7f\xff\xff\xff", b"\x80\0\0\0"])
    @pytest.mark.parametrize("number", [1, -1])
    def test_behind_a_broken_length_reading_goes_on_where_the_index_says(
        self, storage: StorageHarness, time: MockTime, number: int, length: bytes
    ) -> None:
        log = filled_log(storage, time, batches=54)
        segment = log.segments[number]
        batch = list(segment.log.batches())[2]
        path = segment.log.path
        log.close()
        damage(Path(path), batch.position + 8, length)

        with pytest.raises(CorruptDataError, match=rf"^{path}: at byte {batch.position}: topic-0"):
            offsets(storage.log_dir)

        found = offsets(storage.log_dir, failOnCorruption=False)
        missing = sorted(set(range(log.log_end_offset)) - set(found))
        assert missing[0] == batch.base_offset
        assert len(missing) <= 12
        assert found == sorted(found)

    def test_transactions_behind_a_broken_length_are_decided_too(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        log = storage.open_log(storage.config(index_interval_bytes=1))
        broken = put(log, time, ("a", "plain"), ("b", "plain"))
        put(log, time, ("c", "plain"))
        aborting = TransactionalProducer(log, time, 1)
        aborting.put(("d", "lost"))
        aborting.abort()
        put(log, time, ("e", "plain"))
        TransactionalProducer(log, time, 2).put(("f", "open"))
        log.close()
        for file in Path(log.dir).glob("*.txnindex"):
            file.unlink()
        damage(segment_files(log)[0], broken + 8, b"\0\0\0\1")

        found = rows(storage.log_dir, failOnCorruption=False, isolationLevel="read_committed")

        assert [row["key"] for row in found] == [b"c", b"e"]


class TestLiveDirectories:
    def test_a_segment_compacted_after_planning_is_found_again(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        log = compacted_log(storage, segment_bytes=2000, index_interval_bytes=100)
        put_each(log, time, [(f"k{i % 7}", f"v{i}") for i in range(100)])
        source = SegmentDataSource({"path": storage.log_dir, "splitBytes": "400"})
        reader = source.reader(source.schema())
        planned = reader.partitions()

        roll_and_clean(log, time)
        time.sleep(60_000)  # the replaced files are deleted now

        found = [
            row["offset"]
            for split in planned
            for batch in reader.read(split)
            for row in batch.to_pylist()
        ]
        kept = [record.offset for record in data_records(log)]
        assert found[-len(kept) :] == kept
        assert len(set(found)) == len(found)

    def test_segments_compacted_while_they_are_read_are_found_again(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        log = compacted_log(storage, segment_bytes=100_000)
        for start in range(0, 30_000, 3_000):
            put(log, time, *((f"k{i % 5_000}", f"v{i}") for i in range(start, start + 3_000)))
        source = SegmentDataSource({"path": storage.log_dir})
        reader = source.reader(source.schema())
        (split,) = reader.partitions()
        reading = reader.read(split)
        first = next(reading)

        roll_and_clean(log, time)
        time.sleep(60_000)  # the replaced files are deleted now

        begun = first.column("offset").to_pylist()
        rest = [offset for batch in reading for offset in batch.column("offset").to_pylist()]
        kept = [record.offset for record in data_records(log)]
        assert begun == list(range(len(begun)))
        assert 0 < len(begun) < kept[-1]
        assert set(rest) >= {offset for offset in kept if offset >= len(begun)}
        assert sorted({*begun, *rest}) == [*begun, *rest]

    def test_segments_compacted_while_others_are_looked_for_are_found_again(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        log = compacted_log(storage, segment_bytes=2000)
        put_each(log, time, [(f"k{i % 7}", f"v{i}") for i in range(100)])
        put(storage.open_log(storage.config(), name="topic-1"), time, ("k", "v"))

        class CompactedMeanwhile(SegmentOptions):
            def wants(self, topic_partition: TopicPartition) -> bool:
                if topic_partition.partition == 1 and len(segment_files(log)) > 2:
                    roll_and_clean(log, time)
                    time.sleep(60_000)
                return True

        options = SegmentOptions.of({"path": storage.log_dir})
        values = {field.name: getattr(options, field.name) for field in fields(options)}
        planned = SegmentPlanner(CompactedMeanwhile(**values)).splits()

        reader = SegmentDataSource({"path": storage.log_dir}).reader(
            spark_schema(include_headers=False)
        )
        found = [
            row for split in planned for batch in reader.read(split) for row in batch.to_pylist()
        ]
        assert [row["offset"] for row in found if row["partition"] == 0] == [
            record.offset for record in data_records(log)
        ]

    def test_deleted_segments_are_lost_data(self, storage: StorageHarness, time: MockTime) -> None:
        log = filled_log(storage, time)
        source = SegmentDataSource({"path": storage.log_dir})
        reader = source.reader(source.schema())
        (split,) = reader.partitions()
        for file in Path(log.dir).glob("00000000000000000000.*"):
            file.unlink()

        with pytest.raises(DataLossError, match="topic-0: the records from offset 0 on"):
            list(reader.read(split))

    def test_records_appended_after_planning_are_not_read(
        self, storage: StorageHarness, time: MockTime
    ) -> None:
        log = filled_log(storage, time)
        source = SegmentDataSource({"path": storage.log_dir})
        reader = source.reader(source.schema())
        (split,) = reader.partitions()
        end = log.log_end_offset
        put(log, time, ("late", "one"))

        assert sum(batch.num_rows for batch in reader.read(split)) == end
