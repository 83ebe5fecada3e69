import errno
from pathlib import Path

import pytest

from kafkapy.common.compression import CompressionType
from kafkapy.common.errors import CorruptRecordError, KafkaError
from kafkapy.common.record.file_records import MAX_FILE_SIZE, FileRecords, LogOffsetPosition
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.utils.varint import BytesLike
from tests.helpers.records import TIMESTAMP, forged, joined, record, records


class FakeChannel:
    """A file in memory whose reads and writes may come short."""

    def __init__(self, data: bytes = b"", *, step: int = 1 << 30) -> None:
        self.data = bytearray(data)
        self.path = "/fake.log"
        self.step = step
        self.fail_after_writes = -1
        self.reads = 0
        self.flushes = 0
        self.closed = False

    def fileno(self) -> int:
        return 42

    def read_at(self, size: int, position: int) -> bytes:
        self.reads += 1
        return bytes(self.data[position : position + min(size, self.step)])

    def write_at(self, data: BytesLike, position: int) -> int:
        if self.fail_after_writes == 0:
            raise OSError(errno.ENOSPC, "no space")
        self.fail_after_writes -= 1
        piece = data[: self.step]
        self.data[position : position + len(piece)] = piece
        return len(piece)

    def truncate(self, size: int) -> None:
        del self.data[size:]

    def flush(self) -> None:
        self.flushes += 1

    def size(self) -> int:
        return len(self.data)

    def rename_to(self, path: str) -> None:
        self.path = path

    def close(self) -> None:
        self.closed = True


def file_of(*parts: MemoryRecords, step: int = 1 << 30) -> FileRecords:
    return FileRecords(FakeChannel(bytes(joined(*parts).buffer), step=step))


def three() -> tuple[MemoryRecords, ...]:
    return (
        records("a", "b", offset=0, leader_epoch=1),
        records("c", offset=5, timestamp=TIMESTAMP + 50, leader_epoch=2),
        records("d", "e", offset=6, timestamp=TIMESTAMP + 10, leader_epoch=3),
    )


@pytest.mark.parametrize("step", [1, 7, 1 << 30])
def test_append_goes_on_after_short_writes_and_reads(step: int) -> None:
    channel = FakeChannel(step=step)
    file = FileRecords(channel)
    parts = three()

    written = [file.append(part) for part in parts]

    assert written == [part.size_in_bytes for part in parts]
    assert file.size_in_bytes == sum(written)
    assert channel.data == joined(*parts).buffer
    assert [r.value for r in file.records()] == [b"a", b"b", b"c", b"d", b"e"]
    assert file.to_memory_records() == joined(*parts)


def test_failed_append_leaves_the_size_and_is_overwritten_by_the_next() -> None:
    channel = FakeChannel(step=10)
    file = FileRecords(channel)
    file.append(records("a"))
    size = file.size_in_bytes
    channel.fail_after_writes = 2

    with pytest.raises(OSError, match="no space"):
        file.append(records("b", offset=1))

    assert file.size_in_bytes == size
    assert channel.size() > size
    channel.fail_after_writes = -1
    file.append(records("c", offset=1))
    assert [r.value for r in file.records()] == [b"a", b"c"]


def test_append_beyond_the_largest_file_is_refused() -> None:
    file = FileRecords(FakeChannel(), 0, 0, is_slice=True)
    file._size = MAX_FILE_SIZE - 5

    with pytest.raises(ValueError, match="fit"):
        file.append(records("a"))


def test_slice_keeps_its_bounds_when_the_file_grows() -> None:
    first, second, _ = three()
    file = file_of(first, second)
    whole = file.slice(0, MAX_FILE_SIZE)
    tail = file.slice(first.size_in_bytes, 1000)

    file.append(records("later", offset=8))

    assert [b.base_offset for b in whole.batches()] == [0, 5]
    assert [b.base_offset for b in tail.batches()] == [5]
    assert (tail.position, tail.size_in_bytes) == (first.size_in_bytes, second.size_in_bytes)
    assert tail.fileno() == 42
    assert tail.is_slice
    assert tail.slice(10, 5).position == first.size_in_bytes + 10
    assert tail.read(0, 5000) == bytes(second.buffer)


def test_reading_past_the_end_is_clamped_and_outside_refused() -> None:
    file = file_of(records("a"))
    size = file.size_in_bytes

    assert file.read(size - 3, 100) == bytes(file.read(0, size))[-3:]
    assert file.slice(size, 100).size_in_bytes == 0
    assert list(file.slice(size, 100).batches()) == []
    for position, length in [(size + 1, 1), (-1, 1), (0, -1)]:
        with pytest.raises(ValueError, match="within"):
            file.slice(position, length)


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_batches_carry_their_headers_and_load_records_on_demand(magic: int) -> None:
    source = records("a", "b", offset=3, magic=magic, codec=CompressionType.GZIP)
    file = file_of(source)

    (batch,) = file.batches()
    (expected,) = source.batches()

    assert batch.position == 0
    for name in (
        "magic",
        "size_in_bytes",
        "last_offset",
        "attributes",
        "crc",
        "max_timestamp",
        "leader_epoch",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "count",
        "base_offset",
        "next_offset",
        "last_sequence",
        "timestamp_type",
        "compression_type",
    ):
        assert getattr(batch, name) == getattr(expected, name), name
    assert batch.is_valid
    batch.ensure_valid()
    assert list(batch.records()) == list(expected.records())
    assert batch.to_bytes() == expected.buffer


def test_small_batches_share_a_read() -> None:
    file = file_of(*[records("v", offset=i) for i in range(200)])
    channel = file.channel
    assert isinstance(channel, FakeChannel)

    offsets = [batch.base_offset for batch in file.batches()]

    assert offsets == list(range(200))
    assert channel.reads <= file.size_in_bytes // (16 * 1024 - 100) + 1


@pytest.mark.parametrize("magic", [0, 1, 2])
def test_every_truncation_ends_the_iteration_at_the_last_whole_batch(magic: int) -> None:
    first, second = records("a", magic=magic), records("b", offset=1, magic=magic)
    data = bytes(joined(first, second).buffer)

    for size in range(len(data) + 1):
        file = FileRecords(FakeChannel(data[:size]))
        expected = (size >= first.size_in_bytes) + (size == len(data))
        assert len(list(file.batches())) == expected
        found = file.search_for_offset_with_size(1, 0)
        assert (found is not None) == (expected == 2)


@pytest.mark.parametrize("length", [-1, 0, 13])
def test_impossible_size_is_corrupt(length: int) -> None:
    file = file_of(records("a"), forged(records("b", offset=1), length=length))

    with pytest.raises(CorruptRecordError, match="size"):
        list(file.batches())
    with pytest.raises(CorruptRecordError, match="size"):
        file.search_for_offset_with_size(1, 0)


@pytest.mark.parametrize("fields", [{"length": 20}, {"magic": 9}, {"magic": -1}])
def test_impossible_header_is_corrupt(fields: dict[str, int]) -> None:
    file = file_of(forged(records("a"), fix_crc=False, **fields), records("b"))

    with pytest.raises(CorruptRecordError):
        list(file.batches())


@pytest.mark.parametrize("size", [0, 68, 69 + 40])
def test_batch_cut_off_after_its_header_was_read_is_corrupt(size: int) -> None:
    file = file_of(records("a"), records("b", offset=1))
    last = list(file.batches())[-1]

    file.truncate_to(size)

    with pytest.raises(CorruptRecordError, match="not in the file"):
        list(last.records())


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_search_finds_the_first_batch_that_reaches_the_offset(
    magic: int, codec: CompressionType
) -> None:
    parts = [records("x", offset=3 * i, magic=magic, codec=codec) for i in range(150)]
    file = file_of(*parts)
    size = parts[0].size_in_bytes

    for target, index in [(0, 0), (1, 1), (3, 1), (400, 134), (447, 149)]:
        position = sum(part.size_in_bytes for part in parts[:index])
        expected = LogOffsetPosition(3 * index, position, parts[index].size_in_bytes)
        assert file.search_for_offset_with_size(target, 0) == expected
        assert file.search_for_offset_with_size(target, min(position, size)) == expected
    assert file.search_for_offset_with_size(448, 0) is None
    assert file.search_for_offset_with_size(0, file.size_in_bytes) is None


def test_search_reports_the_last_offset_of_a_batch() -> None:
    file = file_of(records("a", "b", "c", offset=10))

    assert file.search_for_offset_with_size(11, 0) == (12, 0, file.size_in_bytes)


def test_search_by_timestamp_finds_the_record() -> None:
    file = file_of(
        records(record("a", timestamp=5), record("b", timestamp=20), offset=0, leader_epoch=4),
        records(record("c", timestamp=10), offset=2, leader_epoch=5),
        records(record("d", timestamp=30), offset=3, magic=1),
    )

    assert file.search_for_timestamp(5, 0, 0) == (5, 0, 4)
    assert file.search_for_timestamp(6, 0, 0) == (20, 1, 4)
    assert file.search_for_timestamp(6, 0, 2) == (10, 2, 5)
    assert file.search_for_timestamp(21, 0, 0) == (30, 3, None)
    assert file.search_for_timestamp(31, 0, 0) is None


def test_largest_timestamp_comes_with_the_last_offset_of_its_batch() -> None:
    parts = three()
    file = file_of(*parts)

    assert file.largest_timestamp_after(0) == (TIMESTAMP + 50, 5, 2)
    after_two = parts[0].size_in_bytes + parts[1].size_in_bytes
    assert file.largest_timestamp_after(after_two) == (TIMESTAMP + 10, 7, 3)
    assert file.largest_timestamp_after(file.size_in_bytes) == (-1, -1, None)


def test_truncate_returns_what_went_and_refuses_nonsense() -> None:
    parts = three()
    file = file_of(*parts)
    size = file.size_in_bytes

    removed = file.truncate_to(parts[0].size_in_bytes)

    assert removed == size - parts[0].size_in_bytes
    assert [b.base_offset for b in file.batches()] == [0]
    for target in (-1, size):
        with pytest.raises(KafkaError, match="truncate"):
            file.truncate_to(target)


def test_preallocated_file_hides_its_zeros_and_trims_them_at_close() -> None:
    channel = FakeChannel(bytes(1000))
    file = FileRecords(channel, end=0)

    file.append(records("a"))
    found = [r.value for r in file.records()]
    file.close()

    assert found == [b"a"]
    assert channel.size() == file.size_in_bytes < 1000
    assert channel.closed
    assert channel.flushes == 1


def test_file_larger_than_a_segment_may_be_is_refused() -> None:
    class Huge(FakeChannel):
        def size(self) -> int:
            return MAX_FILE_SIZE + 1

    with pytest.raises(KafkaError, match="larger"):
        FileRecords(Huge())


def test_rename_moves_the_channel(tmp_path: Path) -> None:
    file = file_of(records("a"))

    file.rename_to("/new.log")
    file.close_handlers()

    assert file.path == "/new.log"
    assert "new.log" in repr(file)
