"""Batches as columns: the same rows as the broker's own decoder finds."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.compression import Compression
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import SimpleRecord, TimestampType
from tests.helpers.records import joined
from tests.unit.common.record.strategies import headers, magics_and_codecs, optional_bytes
from tests.unit.pipeline.columnar.rows import decoded, expected_rows

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
