"""Lengths, counts and varints that lie."""

import tracemalloc

import pytest

from kafkapy.common.errors import Errors, KafkaError
from kafkapy.common.protocol.codec import ProtocolError, read_uvarint, write_uvarint
from kafkapy.common.protocol.messages.fetch import FetchRequest
from kafkapy.common.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.common.protocol.messages.metadata import MetadataRequest
from kafkapy.common.protocol.messages.produce import ProduceRequest
from kafkapy.common.protocol.messages.stop_replica import StopReplicaRequest


def test_protocol_error_has_a_code_on_the_wire() -> None:
    assert issubclass(ProtocolError, KafkaError)
    assert Errors.for_exception(ProtocolError("x")) is Errors.INVALID_REQUEST


@pytest.mark.parametrize(
    ("cls", "version", "data"),
    [
        (MetadataRequest, 0, "7fffffff 0001 61"),
        (MetadataRequest, 9, "ffffffff0f 02 61 00 00 00 00"),
        (ProduceRequest, 7, "ffff 0001 00000001 7fffffff"),
        (StopReplicaRequest, 1, "00000001 00000001 0000000000000001 00 7fffffff"),
        (FetchRequest, 11, "ffffffff" + "00000000" * 3 + "00" + "00000000" * 2 + "7fffffff"),
    ],
)
def test_huge_count_is_refused_before_anything_is_allocated(
    cls: type[MetadataRequest], version: int, data: str
) -> None:
    with pytest.raises(ProtocolError):
        cls.decode(bytes.fromhex(data), version)  # compiles the decoder
    tracemalloc.start()

    with pytest.raises(ProtocolError):
        cls.decode(bytes.fromhex(data), version)

    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 100_000


def test_count_is_bounded_by_the_smallest_element() -> None:
    # Two topics of at least 6 bytes each cannot be in 11 bytes.
    data = bytes.fromhex("ffff 0001 00000001 00000002") + bytes(11)

    with pytest.raises(ProtocolError, match="topic_data has 2 elements"):
        ProduceRequest.decode(data, 7)


@pytest.mark.parametrize(
    ("version", "data"),
    [
        (0, "ffff 00000001 0001 61"),
        (0, "8000 00000001 0001 61"),
        (4, "00 00000001 02 61 00 00"),
    ],
)
def test_null_where_none_is_allowed_is_refused(version: int, data: str) -> None:
    with pytest.raises(ProtocolError, match="group_id is null"):
        HeartbeatRequest.decode(bytes.fromhex(data), version)


def test_bad_utf8_is_refused() -> None:
    with pytest.raises(ProtocolError):
        HeartbeatRequest.decode(bytes.fromhex("0001 ff 00000001 0001 61"), 0)


def test_compact_string_beyond_the_limit_is_refused() -> None:
    data = bytearray()
    write_uvarint(data, 32769)
    data += b"x" * 32768

    with pytest.raises(ProtocolError, match="32767"):
        HeartbeatRequest.decode(bytes(data), 4)


def test_bytes_after_the_message_are_ignored() -> None:
    message = HeartbeatResponse(error_code=3)

    decoded, position = HeartbeatResponse.decode_from(b"??" + message.encode(0) + b"rest", 2, 0)

    assert decoded == message
    assert position == 4


def test_tag_that_its_field_does_not_fill_is_refused() -> None:
    # FetchRequest v12: cluster_id (tag 0) claims 3 bytes and takes 2.
    body = FetchRequest().encode(12)
    assert body.endswith(b"\x00")

    with pytest.raises(ProtocolError, match="cluster_id"):
        FetchRequest.decode(body[:-1] + bytes.fromhex("01 00 03 02 61 00"), 12)


def test_unknown_tags_are_kept_and_passed_on() -> None:
    body = FetchRequest().encode(12)[:-1] + bytes.fromhex("02  00 02 02 61  8101 03 010203")

    decoded = FetchRequest.decode(body, 12)

    assert decoded.cluster_id == "a"
    assert decoded.unknown_tagged_fields == {129: b"\x01\x02\x03"}
    assert decoded.encode(12) == body


def test_more_tags_than_bytes_are_refused() -> None:
    body = HeartbeatResponse().encode(4)

    with pytest.raises(ProtocolError):
        HeartbeatResponse.decode(body[:-1] + bytes.fromhex("ffffffff0f"), 4)


@pytest.mark.parametrize("value", [0, 1, 127, 128, 16383, 16384, 0x7FFFFFFF, 0xFFFFFFFF])
def test_uvarint_round_trips(value: int) -> None:
    out = bytearray()

    write_uvarint(out, value)

    assert read_uvarint(bytes(out), 0) == (value, len(out))


@pytest.mark.parametrize("data", ["808080808001", "ffffffff7f", "ffffffffffffffffff01"])
def test_uvarint_beyond_32_bits_is_refused(data: str) -> None:
    with pytest.raises(ProtocolError):
        read_uvarint(bytes.fromhex(data), 0)
