"""How kafka-console-consumer shows records."""

from __future__ import annotations

import struct
import sys
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, BinaryIO

from kafkapy.clients.consumer.consumer_record import ConsumerRecord
from kafkapy.common.errors import InvalidConfigurationError, KafkaError
from kafkapy.common.protocol.messages.group_metadata_key import GroupMetadataKey
from kafkapy.common.protocol.messages.group_metadata_value import GroupMetadataValue
from kafkapy.common.protocol.messages.offset_commit_key import OffsetCommitKey
from kafkapy.common.protocol.messages.offset_commit_value import OffsetCommitValue
from kafkapy.common.protocol.messages.transaction_log_key import TransactionLogKey
from kafkapy.common.protocol.messages.transaction_log_value import TransactionLogValue
from kafkapy.common.protocol.schema import Message
from kafkapy.common.record.record import TimestampType
from kafkapy.tools.java_text import boolean, double, is_true, single, timestamp_type
from kafkapy.tools.message_json import json_line, message_to_json

Deserializer = Callable[[bytes], bytes]

_VERSION = struct.Struct(">h")


def _number(layout: str, text: Callable[[Any], str] = str) -> Deserializer:
    number = struct.Struct(layout)

    def deserialize(data: bytes) -> bytes:
        if len(data) != number.size:
            raise KafkaError(f"{len(data)} bytes are not a number of {number.size} bytes")
        return text(number.unpack(data)[0]).encode()

    return deserialize


def _boolean(data: bytes) -> bytes:
    if data not in (b"\0", b"\1"):
        raise KafkaError("a boolean is one byte, 0 or 1")
    return boolean(data == b"\1").encode()


def _uuid(data: bytes) -> bytes:
    try:
        return str(uuid.UUID(data.decode())).encode()
    except ValueError as e:
        raise KafkaError(f"not a UUID: {e}") from e


# By the last part of the names of Kafka's classes.
DESERIALIZERS: dict[str, Deserializer] = {
    "StringDeserializer": lambda data: data.decode("utf-8", "replace").encode(),
    "ShortDeserializer": _number(">h"),
    "IntegerDeserializer": _number(">i"),
    "LongDeserializer": _number(">q"),
    "FloatDeserializer": _number(">f", single),
    "DoubleDeserializer": _number(">d", double),
    "BooleanDeserializer": _boolean,
    "UUIDDeserializer": _uuid,
}


class MessageFormatter(ABC):
    """Writes records, one after the other. For one thread.

    Ports: org.apache.kafka.common.MessageFormatter
    """

    @abstractmethod
    def write_to(self, record: ConsumerRecord, output: BinaryIO) -> None:
        """KafkaError for a record that cannot be shown."""


class DefaultMessageFormatter(MessageFormatter):
    """The parts of a record that the properties ask for, the value by default.

    Ports: org.apache.kafka.tools.consumer.DefaultMessageFormatter
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        # constant after construction
        self._print_timestamp = is_true(properties.get("print.timestamp", ""))
        self._print_partition = is_true(properties.get("print.partition", ""))
        self._print_offset = is_true(properties.get("print.offset", ""))
        self._print_headers = is_true(properties.get("print.headers", ""))
        self._print_key = is_true(properties.get("print.key", ""))
        self._print_value = is_true(properties.get("print.value", "true"))
        self._key_separator = properties.get("key.separator", "\t").encode()
        self._line_separator = properties.get("line.separator", "\n").encode()
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._null = properties.get("null.literal", "null").encode()
        self._deserialize_key = _deserializer(properties, "key.deserializer")
        self._deserialize_value = _deserializer(properties, "value.deserializer")
        self._deserialize_header = _deserializer(properties, "headers.deserializer")

    def write_to(self, record: ConsumerRecord, output: BinaryIO) -> None:
        parts: list[bytes] = []
        if self._print_timestamp:
            parts.append(_timestamp(record).encode())
        if self._print_partition:
            parts.append(b"Partition:%d" % record.partition)
        if self._print_offset:
            parts.append(b"Offset:%d" % record.offset)
        if self._print_headers:
            parts.append(self._headers(record))
        if self._print_key:
            parts.append(self._deserialize(self._deserialize_key, record.key))
        if self._print_value:
            parts.append(self._deserialize(self._deserialize_value, record.value))
        if parts:
            output.write(self._key_separator.join(parts) + self._line_separator)

    def _headers(self, record: ConsumerRecord) -> bytes:
        return (
            self._headers_separator.join(
                key.encode() + b":" + self._deserialize(self._deserialize_header, value)
                for key, value in record.headers
            )
            or b"NO_HEADERS"
        )

    def _deserialize(self, deserialize: Deserializer | None, data: bytes | None) -> bytes:
        data = self._null if data is None else data
        return data if deserialize is None else deserialize(data)


class LoggingMessageFormatter(DefaultMessageFormatter):
    """As the default, and each record on standard error too.

    Ports: org.apache.kafka.tools.consumer.LoggingMessageFormatter
    """

    def write_to(self, record: ConsumerRecord, output: BinaryIO) -> None:
        super().write_to(record, output)
        key = "" if record.key is None else f"key:{_text(record.key)}, "
        value = "" if record.value is None else f"value:{_text(record.value)}"
        print(f"{_timestamp(record)}, {key}{value}", file=sys.stderr)


class NoOpMessageFormatter(MessageFormatter):
    """Shows nothing, for counting.

    Ports: org.apache.kafka.tools.consumer.NoOpMessageFormatter
    """

    def __init__(self, properties: Mapping[str, str]) -> None:
        pass

    def write_to(self, record: ConsumerRecord, output: BinaryIO) -> None:
        pass


class ApiMessageFormatter(MessageFormatter):
    """Records of an internal topic as JSON; those of another kind are left out.

    Ports: org.apache.kafka.tools.consumer.ApiMessageFormatter
    """

    KEY: type[Message]
    VALUE: type[Message]

    def __init__(self, properties: Mapping[str, str]) -> None:
        pass

    def write_to(self, record: ConsumerRecord, output: BinaryIO) -> None:
        if record.key is None:
            return
        key = _versioned(self.KEY, record.key)
        if key is None:
            return
        value = None
        if record.value is not None:
            value = _versioned(self.VALUE, record.value) or {
                "version": _version(record.value),
                "data": "unknown",
            }
        output.write(json_line({"key": key, "value": value}).encode())


class OffsetsMessageFormatter(ApiMessageFormatter):
    """The offsets in __consumer_offsets.

    Ports: org.apache.kafka.tools.consumer.OffsetsMessageFormatter
    """

    KEY = OffsetCommitKey
    VALUE = OffsetCommitValue


class GroupMetadataMessageFormatter(ApiMessageFormatter):
    """The groups in __consumer_offsets.

    Ports: org.apache.kafka.tools.consumer.GroupMetadataMessageFormatter
    """

    KEY = GroupMetadataKey
    VALUE = GroupMetadataValue


class TransactionLogMessageFormatter(ApiMessageFormatter):
    """The transactions in __transaction_state.

    Ports: org.apache.kafka.tools.consumer.TransactionLogMessageFormatter
    """

    KEY = TransactionLogKey
    VALUE = TransactionLogValue


_FORMATTERS: dict[str, Callable[[Mapping[str, str]], MessageFormatter]] = {
    formatter.__name__: formatter
    for formatter in (
        DefaultMessageFormatter,
        LoggingMessageFormatter,
        NoOpMessageFormatter,
        OffsetsMessageFormatter,
        GroupMetadataMessageFormatter,
        TransactionLogMessageFormatter,
    )
}
FORMATTER_NAMES = tuple(_FORMATTERS)


def formatter_named(name: str, properties: Mapping[str, str]) -> MessageFormatter:
    """By the name of Kafka's class, of this release or an earlier one."""
    formatter = _FORMATTERS.get(_short(name))
    if formatter is None:
        raise InvalidConfigurationError(
            f"There is no formatter {name}; there are {', '.join(FORMATTER_NAMES)}"
        )
    return formatter(properties)


def _deserializer(properties: Mapping[str, str], name: str) -> Deserializer | None:
    wanted = properties.get(name)
    if not wanted or _short(wanted) in ("ByteArrayDeserializer", "BytesDeserializer"):
        return None
    deserializer = DESERIALIZERS.get(_short(wanted))
    if deserializer is None:
        raise InvalidConfigurationError(
            f"{name}: there is no {wanted}; there are {', '.join(DESERIALIZERS)}"
        )
    return deserializer


def _short(class_name: str) -> str:
    return class_name.rpartition(".")[2].rpartition("$")[2]


def _timestamp(record: ConsumerRecord) -> str:
    if record.timestamp_type is TimestampType.NO_TIMESTAMP_TYPE:
        return "NO_TIMESTAMP"
    return f"{timestamp_type(record.timestamp_type)}:{record.timestamp}"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise KafkaError("a record is too short to have a version")
    version: int = _VERSION.unpack_from(data)[0]
    return version


def _versioned(message_class: type[Message], data: bytes) -> dict[str, Any] | None:
    version = _version(data)
    if version not in message_class.VERSIONS:
        return None
    message, _ = message_class.decode_from(data, _VERSION.size, version)
    return {"version": version, "data": message_to_json(message, version)}
