import pytest

from kafkapy.common.compression import CompressionType
from kafkapy.pipeline.source.offset_range_fetcher import end_of_batches
from tests.helpers.records import records


def batch(*values: str, offset: int, magic: int = 2) -> bytes:
    codec = CompressionType.NONE if magic == 2 else CompressionType.GZIP
    return bytes(records(*values, offset=offset, magic=magic, codec=codec).buffer)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_the_next_offset_is_after_the_last_record_of_the_last_batch(magic: int) -> None:
    data = batch("a", offset=5, magic=magic) + batch("b", "c", "d", offset=9, magic=magic)

    assert end_of_batches(data) == 12
    assert end_of_batches(memoryview(data)) == 12


def test_a_batch_that_is_cut_off_does_not_count() -> None:
    whole = batch("a", "b", offset=5)

    assert end_of_batches(whole + whole[:-1]) == 7
    assert end_of_batches(whole + whole[:10]) == 7
    assert end_of_batches(whole[:-1]) is None
    assert end_of_batches(b"") is None
    assert end_of_batches(None) is None


def test_a_size_that_leads_nowhere_ends_the_walk() -> None:
    broken = bytearray(batch("a", offset=5))
    broken[8:12] = b"\xff\xff\xff\xff"

    assert end_of_batches(bytes(broken)) is None
