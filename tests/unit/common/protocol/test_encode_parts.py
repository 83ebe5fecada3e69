"""Records travel beside the encoded fields, not through them."""

from dataclasses import dataclass

import pytest

from kafkapy.common.protocol.codec import ProtocolError, RecordsData
from kafkapy.common.protocol.messages.fetch import FetchResponse
from kafkapy.common.protocol.messages.fetch_snapshot import FetchSnapshotResponse
from kafkapy.common.protocol.messages.produce import ProduceRequest


@dataclass(frozen=True, slots=True)
class RecordsInFile:
    size_in_bytes: int


@dataclass(frozen=True, slots=True)
class RecordsInMemory:
    buffer: memoryview

    @property
    def size_in_bytes(self) -> int:
        return len(self.buffer)


def response(*records: RecordsData | None) -> FetchResponse:
    partitions = [
        FetchResponse.PartitionData(partition_index=index, records=data)
        for index, data in enumerate(records)
    ]
    topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=partitions)
    return FetchResponse(responses=[topic])


@pytest.mark.parametrize("version", [4, 11, 12, 17])
def test_records_in_a_file_become_a_part_of_their_own(version: int) -> None:
    data = bytes(3000)
    file = RecordsInFile(len(data))

    parts = response(file, file).encode_parts(version)

    assert [part is file for part in parts] == [False, True, False, True, False]
    whole = b"".join(data if part is file else part for part in parts)  # type: ignore[misc]
    assert whole == response(data, data).encode(version)


@pytest.mark.parametrize("version", [4, 17])
def test_large_records_in_memory_are_not_copied(version: int) -> None:
    data = memoryview(bytes(5000))

    parts = response(RecordsInMemory(data), data).encode_parts(version)

    assert [part is data for part in parts] == [False, True, False, True, False]


def test_small_records_in_memory_stay_in_one_part() -> None:
    parts = response(RecordsInMemory(memoryview(b"abc")), b"def", bytearray(b"ghi")).encode_parts(4)

    assert len(parts) == 1
    assert parts[0] == response(b"abc", b"def", b"ghi").encode(4)


@pytest.mark.parametrize("empty", [b"", RecordsInFile(0)])
def test_empty_records_add_no_part(empty: RecordsData) -> None:
    assert len(response(empty).encode_parts(11)) == 1


def test_first_part_starts_with_the_prefix() -> None:
    parts = response(RecordsInFile(10)).encode_parts(11, b"head")

    assert isinstance(parts[0], bytearray)
    assert parts[0].startswith(b"head")
    assert parts[0][4:] == response(RecordsInFile(10)).encode_parts(11)[0]


def test_records_in_a_file_need_encode_parts() -> None:
    with pytest.raises(TypeError):
        response(RecordsInFile(10)).encode(11)


@pytest.mark.parametrize("version", [7, 9])
def test_decoded_records_are_views_of_the_request(version: int) -> None:
    partition = ProduceRequest.PartitionProduceData(index=1, records=memoryview(b"batch"))
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[partition])
    buffer = bytearray(ProduceRequest(topic_data=[topic]).encode(version))

    records = ProduceRequest.decode(buffer, version).topic_data[0].partition_data[0].records

    assert isinstance(records, memoryview)
    assert records.obj is buffer
    assert records == b"batch"


def test_null_where_records_are_required_is_a_protocol_error() -> None:
    partition = FetchSnapshotResponse.PartitionSnapshot()
    topic = FetchSnapshotResponse.TopicSnapshot(partitions=[partition])

    with pytest.raises(ProtocolError):
        FetchSnapshotResponse(topics=[topic]).encode(0)
