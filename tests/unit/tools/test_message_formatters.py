import io

import pytest

from kafkapy.clients.consumer.consumer_record import ConsumerRecord
from kafkapy.common.errors import InvalidConfigurationError, KafkaError
from kafkapy.common.record.record import Header, TimestampType
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.group.group_metadata_records import group_metadata_key, offset_commit_key
from kafkapy.tools.message_formatters import formatter_named

_EVERYTHING = {
    f"print.{part}": "true" for part in ("timestamp", "partition", "offset", "headers", "key")
}


def _record(
    value: bytes | None = b"v",
    *,
    key: bytes | None = b"k",
    headers: tuple[Header, ...] = (),
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
) -> ConsumerRecord:
    return ConsumerRecord(
        topic="t",
        partition=1,
        leader_epoch=0,
        offset=7,
        timestamp=5,
        timestamp_type=timestamp_type,
        key=key,
        value=value,
        headers=headers,
        serialized_key_size=1,
        serialized_value_size=1,
    )


def _shown(record: ConsumerRecord, properties: dict[str, str], name: str = "Default") -> bytes:
    output = io.BytesIO()
    formatter_named(f"org.example.{name}MessageFormatter", properties).write_to(record, output)
    return output.getvalue()


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, b"v\n"),
        ({"print.key": "true"}, b"k\tv\n"),
        ({"print.key": "true", "print.value": "false"}, b"k\n"),
        ({"print.value": "false"}, b""),
        (_EVERYTHING, b"CreateTime:5\tPartition:1\tOffset:7\tNO_HEADERS\tk\tv\n"),
        ({"print.key": "true", "key.separator": "=", "line.separator": ";"}, b"k=v;"),
    ],
)
def test_the_parts_asked_for_are_shown(properties: dict[str, str], expected: bytes) -> None:
    assert _shown(_record(), properties) == expected


def test_nulls_and_headers_have_their_words() -> None:
    record = _record(None, key=None, headers=(Header("a", b"1"), Header("b", None)))
    properties = {"print.key": "true", "print.headers": "true", "headers.separator": ";"}

    assert _shown(record, properties) == b"a:1;b:null\tnull\tnull\n"
    assert _shown(record, {**properties, "null.literal": "-"}) == b"a:1;b:-\t-\t-\n"


def test_a_record_without_a_timestamp_says_so() -> None:
    record = _record(timestamp_type=TimestampType.NO_TIMESTAMP_TYPE)

    assert _shown(record, {"print.timestamp": "true"}) == b"NO_TIMESTAMP\tv\n"


@pytest.mark.parametrize(
    ("deserializer", "data", "expected"),
    [
        ("ShortDeserializer", b"\xff\xfe", b"-2\n"),
        ("IntegerDeserializer", b"\0\0\1\0", b"256\n"),
        ("LongDeserializer", b"\0" * 7 + b"\1", b"1\n"),
        ("BooleanDeserializer", b"\1", b"true\n"),
        ("BooleanDeserializer", b"\0", b"false\n"),
        (
            "UUIDDeserializer",
            b"C0FFEE00-0000-4000-8000-000000000001",
            b"c0ffee00-0000-4000-8000-000000000001\n",
        ),
        ("StringDeserializer", b"\xff", b"\xef\xbf\xbd\n"),
        ("ByteArrayDeserializer", b"\xff", b"\xff\n"),
    ],
)
def test_values_are_deserialized(deserializer: str, data: bytes, expected: bytes) -> None:
    properties = {"value.deserializer": f"org.apache.kafka.common.serialization.{deserializer}"}

    assert _shown(_record(data), properties) == expected


def test_a_value_of_the_wrong_size_is_an_error() -> None:
    with pytest.raises(KafkaError, match="3 bytes are not a number of 8 bytes"):
        _shown(_record(b"abc"), {"value.deserializer": "LongDeserializer"})


@pytest.mark.parametrize(
    ("deserializer", "data"),
    [
        ("BooleanDeserializer", b""),
        ("BooleanDeserializer", b"\2"),
        ("BooleanDeserializer", b"\1\1"),
        ("UUIDDeserializer", b"null"),
        ("UUIDDeserializer", b"\xff" * 36),
    ],
)
def test_a_value_of_another_kind_is_an_error(deserializer: str, data: bytes) -> None:
    with pytest.raises(KafkaError):
        _shown(_record(data), {"value.deserializer": deserializer})


def test_unknown_names_are_refused() -> None:
    with pytest.raises(InvalidConfigurationError, match="There is no formatter NoSuch"):
        formatter_named("NoSuch", {})
    with pytest.raises(InvalidConfigurationError, match=r"key\.deserializer: there is no NoSuch"):
        formatter_named("DefaultMessageFormatter", {"key.deserializer": "NoSuch"})


def test_records_of_internal_topics_are_shown_by_kind() -> None:
    offset = _record(None, key=offset_commit_key("g", TopicPartition("t", 3)))
    group = _record(None, key=group_metadata_key("g"))

    assert _shown(offset, {}, "Offsets") == (
        b'{"key":{"version":1,"data":{"group":"g","topic":"t","partition":3}},"value":null}'
    )
    assert _shown(offset, {}, "GroupMetadata") == b""
    assert _shown(group, {}, "GroupMetadata") == (
        b'{"key":{"version":2,"data":{"group":"g"}},"value":null}'
    )
