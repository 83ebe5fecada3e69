"""Batches as columns: the same rows as the broker's own decoder finds."""

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StructField, StructType

from kafkapy.common.compression import Compression, CompressionType
from kafkapy.common.record.control_record import ControlRecordType
from kafkapy.common.record.default_record import encode_record
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import Header, SimpleRecord, TimestampType
from kafkapy.pipeline.columnar.record_schema import RecordSchema, spark_schema
from kafkapy.pipeline.pipeline_errors import CorruptDataError, PipelineError
from kafkapy.storage.transaction_index import AbortedTxn
from kafkapy.utils.checksums import crc32
from tests.helpers.records import (
    end_txn_marker,
    forged,
    forged_body,
    joined,
    record,
    record_bytes,
    records,
)
from tests.unit.common.record.strategies import headers, magics_and_codecs, optional_bytes
from tests.unit.pipeline.columnar.rows import (
    decoded,
    decoded_batches,
    decoder,
    expected_rows,
    rows,
)

timestamps = st.integers(-1, 2**52)
simple_records = st.builds(SimpleRecord, timestamps, optional_bytes, optional_bytes, headers)


@st.composite
def logs(draw: st.DrawFn) -> MemoryRecords:
    """Batches of any format one after another, with gaps as compaction leaves them."""
    offset = draw(st.integers(0, 2**40))
    parts = []
    for _ in range(draw(st.integers(1, 5))):
        magic, codec = draw(magics_and_codecs)
        batch = draw(st.lists(simple_records, min_size=1, max_size=6))
        append_time = magic > 0 and draw(st.booleans())
        part = MemoryRecords.with_records(
            *(each if magic == 2 else each._replace(headers=()) for each in batch),
            compression=Compression(codec),
            magic=magic,
            initial_offset=offset,
            timestamp_type=(
                TimestampType.LOG_APPEND_TIME if append_time else TimestampType.CREATE_TIME
            ),
            log_append_time=draw(timestamps) if append_time else -1,
        )
        parts.append(part)
        offset += len(batch) + draw(st.integers(0, 3))
    return joined(*parts)


class TestEquality:
    @settings(derandomize=True, deadline=None, max_examples=80)
    @given(log=logs(), max_rows=st.sampled_from([1, 3, 1000]))
    def test_rows_are_those_of_the_broker_s_decoder(
        self, log: MemoryRecords, max_rows: int
    ) -> None:
        assert decoded(log, max_rows=max_rows) == expected_rows(log)

    @settings(derandomize=True, deadline=None, max_examples=40)
    @given(log=logs(), data=st.data())
    def test_a_range_leaves_out_what_is_outside(
        self, log: MemoryRecords, data: st.DataObject
    ) -> None:
        offsets = [row[4] for row in expected_rows(log)]
        start = data.draw(st.integers(offsets[0] - 1, offsets[-1] + 2))
        end = data.draw(st.integers(start, offsets[-1] + 3))

        found = decoded(log, start_offset=start, end_offset=end)

        assert found == expected_rows(log, start, end)


class TestFields:
    @pytest.mark.parametrize("codec", list(CompressionType))
    def test_every_codec(self, codec: CompressionType) -> None:
        log = joined(
            records("a", "b" * 5000, codec=codec), records("c", offset=7, key="k", codec=codec)
        )

        assert decoded(log) == expected_rows(log)

    def test_nulls_and_empty_ones_differ(self) -> None:
        log = records(
            SimpleRecord(1, None, None), SimpleRecord(2, b"", b""), SimpleRecord(3, b"k", None)
        )

        assert [row[:2] for row in decoded(log)] == [(None, None), (b"", b""), (b"k", None)]

    def test_records_without_headers_have_null_there(self) -> None:
        headers = (Header("a", b"1"), Header("a", None), Header("", b""))
        log = records(SimpleRecord(1, b"k", b"v"), SimpleRecord(1, b"k", b"v", headers))

        assert [row[-1] for row in decoded(log)] == [None, [("a", b"1"), ("a", None), ("", b"")]]

    def test_a_header_key_that_is_not_text_has_its_bytes_replaced(self) -> None:
        body = bytearray(encode_record(0, 0, None, b"v", (Header("key", b"x"),)))
        body[body.index(b"key")] = 0xFF
        log = forged_body(bytes(body))

        assert decoded(log) == expected_rows(log)
        assert decoded(log)[0][-1] == [("�ey", b"x")]

    def test_log_append_time_is_the_batch_s(self) -> None:
        log = records("a", "b", timestamp_type=TimestampType.LOG_APPEND_TIME, log_append_time=77)

        assert [(row[5], row[6]) for row in decoded(log)] == [(77_000, 1), (77_000, 1)]

    @pytest.mark.parametrize("delta", [-(2**31), -1, 63, 64, 8191, 8192, 2**20, 2**27, 2**31 - 1])
    def test_deltas_of_any_size_and_sign(self, delta: int) -> None:
        bodies = [encode_record(1000 * delta, delta, b"k", b"v"), encode_record(0, 0, None, b"")]
        log = forged_body(b"".join(bodies), count=2, last_offset_delta=2**31 - 1, base_offset=2**40)

        assert decoded(log) == expected_rows(log)

    def test_gaps_that_compaction_leaves_inside_a_batch(self) -> None:
        bodies = [encode_record(0, delta, b"k", b"v") for delta in (2, 3, 9)]
        log = forged_body(b"".join(bodies), count=3, last_offset_delta=12, base_offset=100)
        reading = decoder()

        found = rows([*reading.decode(log.buffer), *reading.finish()])

        assert [row[4] for row in found] == [102, 103, 109]
        assert reading.next_offset == 113

    def test_a_batch_emptied_by_compaction_moves_the_position_only(self) -> None:
        log = forged_body(b"", count=0, last_offset_delta=4, base_offset=10)
        reading = decoder()

        assert rows([*reading.decode(log.buffer), *reading.finish()]) == []
        assert reading.next_offset == 15

    def test_payloads_that_look_like_records(self) -> None:
        inner = bytes(records(*("x" * size for size in range(60, 140))).buffer)
        log = records(
            *(inner[start:] for start in range(0, 4000, 37)), "\0" * 3000, "\0\x10\0" * 50
        )

        assert decoded(log) == expected_rows(log)

    def test_a_timestamp_that_spark_cannot_hold_is_named(self) -> None:
        log = records(record(), record(timestamp=2**62), offset=8)

        with pytest.raises(PipelineError, match=f"orders-3: the timestamp {2**62} at offset 9"):
            decoded(log)

        without = RecordSchema.of_spark(StructType([StructField("offset", LongType())]))
        assert decoded(log, schema=without) == [(8,), (9,)]

    @pytest.mark.parametrize(
        "names", [["value"], ["offset", "key"], ["headers"], ["timestamp", "topic", "partition"]]
    )
    def test_only_the_columns_wanted_in_the_order_wanted(self, names: list[str]) -> None:
        log = joined(records("a", "b"), records(SimpleRecord(1, b"k", b"v", (Header("h", b"1"),))))
        complete = spark_schema(include_headers=True)
        places = [complete.names.index(name) for name in names]
        schema = RecordSchema.of_spark(StructType([complete[name] for name in names]))

        assert decoded(log, schema=schema) == [
            tuple(row[place] for place in places) for row in expected_rows(log)
        ]


class TestBatching:
    def test_small_batches_gather_and_large_ones_are_cut(self) -> None:
        small = joined(*(records(str(offset), offset=offset) for offset in range(25)))
        large = records(*("v" * 10 for _ in range(25)), offset=25)
        reading = decoder(max_rows=10)

        found = [*reading.decode(small.buffer), *reading.decode(large.buffer), *reading.finish()]

        assert [batch.num_rows for batch in found] == [10, 10, 5, 10, 10, 5]
        assert rows(found) == expected_rows(joined(small, large))

    def test_bytes_bound_a_record_batch_too(self) -> None:
        log = records(*("v" * 1000 for _ in range(10)))

        sizes = [batch.num_rows for batch in decoded_batches(log, max_bytes=3500)]

        assert sizes == [3, 3, 3, 1]

    def test_a_record_larger_than_the_bound_comes_alone(self) -> None:
        log = records("v" * 5000, "w", "x" * 5000)

        sizes = [batch.num_rows for batch in decoded_batches(log, max_bytes=100)]

        assert sizes == [1, 1, 1]

    def test_what_is_cut_off_is_left_for_the_next_call(self) -> None:
        log = joined(records("a"), records("b", offset=1), records("c", offset=2))
        data = bytes(log.buffer)
        size = len(data) // 3

        for cut in range(len(data)):
            reading = decoder()
            found = [*reading.decode(data[:cut])]
            assert reading.consumed_bytes == cut // size * size
            found += [*reading.decode(data[reading.consumed_bytes :]), *reading.finish()]
            assert rows(found) == expected_rows(log), cut

    def test_reading_stops_before_the_first_batch_behind_the_end(self) -> None:
        log = joined(records("a", "b"), records("c", offset=10))
        reading = decoder(end_offset=5)

        found = [*reading.decode(log.buffer), *reading.finish()]

        assert [row[4] for row in rows(found)] == [0, 1]
        assert reading.next_offset == 5
        assert reading.consumed_bytes == len(records("a", "b").buffer)

    def test_an_end_inside_a_batch_is_passed_with_it(self) -> None:
        reading = decoder(start_offset=1, end_offset=3)

        found = [*reading.decode(records("a", "b", "c", "d").buffer), *reading.finish()]

        assert [row[1] for row in rows(found)] == [b"b", b"c"]
        assert reading.next_offset == 4


def transactional(value: str, *, offset: int, producer_id: int) -> MemoryRecords:
    return records(
        value,
        offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        sequence=0,
        transactional=True,
    )


class TestTransactions:
    def log(self) -> MemoryRecords:
        """Producer 7 aborts at 4 and commits at 6; 8 commits at 5."""
        return joined(
            transactional("a", offset=0, producer_id=7),
            transactional("b", offset=1, producer_id=8),
            records("c", offset=2),
            transactional("d", offset=3, producer_id=7),
            end_txn_marker(ControlRecordType.ABORT, offset=4, producer_id=7),
            end_txn_marker(offset=5, producer_id=8),
            transactional("e", offset=6, producer_id=7),
            end_txn_marker(offset=7, producer_id=7),
        )

    def read(self, *aborted: AbortedTxn, **changes: Any) -> list[bytes]:
        reading = decoder(read_committed=True, **changes)
        reading.add_aborted(aborted)
        return [row[1] for row in rows([*reading.decode(self.log().buffer), *reading.finish()])]

    def test_markers_are_never_rows(self) -> None:
        reading = decoder()

        found = rows([*reading.decode(self.log().buffer), *reading.finish()])

        assert [row[4] for row in found] == [0, 1, 2, 3, 6]
        assert reading.next_offset == 8

    def test_an_aborted_transaction_ends_at_its_marker(self) -> None:
        assert self.read(AbortedTxn(7, 0, 4, 0)) == [b"b", b"c", b"e"]

    def test_one_that_began_before_the_range_is_left_out_too(self) -> None:
        assert self.read(AbortedTxn(7, 0, 4, 0), start_offset=2) == [b"c", b"e"]

    def test_a_transaction_named_again_is_aborted_once(self) -> None:
        again = AbortedTxn(7, 0, 4, 0)

        assert self.read(again, again) == [b"b", b"c", b"e"]

    def test_none_is_aborted_for_who_reads_everything(self) -> None:
        reading = decoder()
        reading.add_aborted([AbortedTxn(7, 0, 4, 0)])

        found = rows([*reading.decode(self.log().buffer), *reading.finish()])

        assert [row[1] for row in found] == [b"a", b"b", b"c", b"d", b"e"]


class TestCorruption:
    @pytest.mark.parametrize("magic", [0, 1, 2])
    def test_a_wrong_checksum_names_partition_and_offset(self, magic: int) -> None:
        log = joined(records("a", magic=magic), records("b", offset=1, magic=magic))
        log.buffer[len(log.buffer) - 1] ^= 1

        with pytest.raises(CorruptDataError, match="orders-3: the batch at offset 1 is corrupt"):
            decoded(log)

    @pytest.mark.parametrize(
        ("body", "count"),
        [
            (record_bytes(), 2),
            (record_bytes() * 2, 1),
            (record_bytes()[:-1], 1),
            (record_bytes() + b"\0", 1),
            (b"\1" + record_bytes(), 1),
            (b"\x80" * 9, 1),
            (b"\xff\xff\xff\xff\x0f" + record_bytes(), 1),
            (b"\x0e\0\0\0\x7e\0\0\0", 1),
            (b"\x0e\0\0\0\1\x7e\0\0", 1),
            (b"\x0e\0\0\0\1\1\x7e\0", 1),
            (b"\x0e\0\0\0\1\1\1\0", 1),
            (b"\x10\0\0\0\1\1\2\1\1", 1),
            (b"\x12\0\0\0\1\1\2\0\x7e\0", 1),
            (b"\x18\0\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80", 1),
            (record_bytes(), -1),
            (record_bytes(), 2**31 - 1),
        ],
    )
    def test_a_section_that_is_not_made_of_its_records(self, body: bytes, count: int) -> None:
        broken = forged_body(body, count=count, last_offset_delta=0, base_offset=5)
        log = joined(records("a"), broken, records("z", offset=9))
        left_out: list[int] = []

        with pytest.raises(CorruptDataError, match="orders-3: the batch at offset 5 is corrupt"):
            decoded(log)
        found = decoded(log, on_corrupt=lambda offset, reason: left_out.append(offset))

        assert [row[1] for row in found] == [b"a", b"z"]
        assert left_out == [5]

    @pytest.mark.parametrize("codec", [each for each in CompressionType if each])
    def test_content_that_its_codec_did_not_write(self, codec: CompressionType) -> None:
        log = forged_body(b"\xaa" * 40, codec=codec)

        with pytest.raises(CorruptDataError, match="orders-3: the batch at offset 0 is corrupt"):
            decoded(log)

    def test_unchecked_checksums_let_a_changed_value_through(self) -> None:
        log = records("good")
        log.buffer[-3:-1] = b"ne"

        assert [row[1] for row in decoded(log, check_crcs=False)] == [b"gone"]

    @pytest.mark.parametrize(
        "change", [{"length": 48}, {"length": -1}, {"length": 0}, {"magic": 3}, {"magic": 127}]
    )
    def test_what_hides_the_next_batch_cannot_be_left_out(self, change: dict[str, int]) -> None:
        log = joined(records("a"), forged(records("b", offset=1), **change))
        reading = decoder(on_corrupt=lambda offset, reason: None)

        with pytest.raises(CorruptDataError, match="orders-3: the batch at offset 1 is corrupt"):
            list(reading.decode(log.buffer))

        assert [row[1] for row in rows(reading.finish())] == [b"a"]
        assert reading.consumed_bytes == len(records("a").buffer)

    def test_a_corrupt_record_inside_an_old_wrapper(self) -> None:
        log = records("a", "b", magic=1, codec=CompressionType.GZIP)
        inner = bytearray(records("a", "b", magic=1).buffer)
        inner[-1] ^= 1
        wrapper = records(
            SimpleRecord(1, None, CompressionType.GZIP.compress(inner, 1)), magic=1, offset=1
        )
        wrapper.buffer[17] |= CompressionType.GZIP
        struct.pack_into(">I", wrapper.buffer, 12, crc32(wrapper.buffer[16:]))

        assert len(decoded(log)) == 2
        with pytest.raises(CorruptDataError, match="orders-3: the batch at offset 1 is corrupt"):
            decoded(wrapper)
