import struct

from kafkapy.common.protocol.headers import encode_response_header, parse_request_header
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.common.record.memory_records import MemoryRecords
from tests.benchmarks import frames


def _body(frame: bytes) -> memoryview:
    assert struct.unpack_from(">i", frame)[0] == len(frame) - 4
    _, position = parse_request_header(frame[4:])
    return memoryview(frame)[4 + position :]


def test_the_smallest_request_has_the_size_the_limit_server_is_measured_with() -> None:
    requests = frames.smallest().requests

    assert [len(request) for request in requests] == [frames.SMALLEST_FRAME_BYTES]


def test_a_large_batch_fills_its_size_exactly_and_is_valid() -> None:
    batch = frames.large_batch()

    assert len(batch) == frames.BATCH_BYTES
    (decoded,) = MemoryRecords(batch).batches()
    decoded.ensure_valid()
    assert len(list(decoded.records())) == frames.RECORDS_PER_BATCH


def test_produce_frames_address_one_partition_each() -> None:
    made = frames.produce("topic", 3, frames.small_batch())

    requests = [ProduceRequest.decode(_body(one), frames.PRODUCE_VERSION) for one in made.requests]
    assert [r.topic_data[0].partition_data[0].index for r in requests] == [0, 1, 2]
    assert all(request.acks == 1 for request in requests)


def test_fetch_frames_walk_through_the_slices_of_each_partition() -> None:
    made = frames.fetch("topic", 2, 2)

    requests = [FetchRequest.decode(_body(one), frames.FETCH_VERSION) for one in made.requests]
    asked = [request.topics[0].partitions[0] for request in requests]
    per_slice = frames.SLICE_BYTES // frames.BATCH_BYTES * frames.RECORDS_PER_BATCH
    assert [(p.partition, p.fetch_offset) for p in asked] == [
        (0, 0),
        (0, per_slice),
        (1, 0),
        (1, per_slice),
    ]


def test_the_error_position_is_that_of_the_partition_error() -> None:
    produced = ProduceResponse.PartitionProduceResponse(index=2, error_code=0x0102)
    topic = ProduceResponse.TopicProduceResponse(name="topic", partition_responses=[produced])
    fetched = FetchResponse.PartitionData(partition_index=2, error_code=0x0102, records=b"")
    fetched_topic = FetchResponse.FetchableTopicResponse(topic="topic", partitions=[fetched])
    answers = {
        frames.produce("topic", 1, frames.small_batch()).error_at: (
            ProduceResponse(responses=[topic]),
            frames.PRODUCE_VERSION,
        ),
        frames.fetch("topic", 1, 1).error_at: (
            FetchResponse(session_id=9, responses=[fetched_topic]),
            frames.FETCH_VERSION,
        ),
    }

    for error_at, (response, version) in answers.items():
        assert response.API_KEY is not None
        header = encode_response_header(response.API_KEY, version, 77)
        answer = header + response.encode(version)
        assert answer[error_at : error_at + 2] == b"\x01\x02"
