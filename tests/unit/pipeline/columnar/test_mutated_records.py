"""Bytes changed at random: taken or refused exactly as the broker's own decoder does."""

import random

import pytest

from kafkapy.common.errors import ApiError
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import Header, SimpleRecord
from kafkapy.common.record.record_batch import RECORD_BATCH_OVERHEAD
from kafkapy.pipeline.pipeline_errors import CorruptDataError
from tests.helpers.records import records
from tests.unit.pipeline.columnar.rows import Row, decoded, expected_rows

TELLING_BYTES = (0, 1, 2, 0x7F, 0x80, 0xFF)


def batch(rng: random.Random) -> MemoryRecords:
    def field(*sizes: int) -> bytes | None:
        return None if rng.random() < 0.2 else rng.randbytes(rng.choice(sizes))

    def headers() -> tuple[Header, ...]:
        count = rng.choice([0, 0, 0, 1, 3])
        return tuple(Header("h" * rng.randrange(3), field(0, 1)) for _ in range(count))

    return records(
        *(
            SimpleRecord(1000 + number, field(0, 1, 4), field(0, 1, 70, 200), headers())
            for number in range(rng.randrange(1, 60))
        )
    )


def rows_or_none(source: MemoryRecords) -> list[Row] | None:
    try:
        return expected_rows(source)
    except ApiError:
        return None


@pytest.mark.parametrize("seed", range(4))
def test_changed_records_are_read_or_refused_as_the_broker_does(seed: int) -> None:
    rng = random.Random(seed)
    refused = 0
    for _ in range(60):
        log = MemoryRecords(bytearray(batch(rng).buffer))
        for _ in range(rng.randrange(1, 3)):
            position = rng.randrange(RECORD_BATCH_OVERHEAD, len(log.buffer))
            log.buffer[position] = rng.choice([*TELLING_BYTES, rng.randrange(256)])

        expected = rows_or_none(log)

        if expected is not None:
            assert decoded(log, check_crcs=False) == expected
        else:
            refused += 1
            with pytest.raises(CorruptDataError):
                decoded(log, check_crcs=False)
    assert 0 < refused < 60
