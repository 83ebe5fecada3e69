"""What kafka-dump-log shows of a record's key and value."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from kafkapy.common.errors import KafkaError
from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.protocol.messages.consumer_protocol_assignment import ConsumerProtocolAssignment
from kafkapy.common.protocol.messages.consumer_protocol_subscription import (
    ConsumerProtocolSubscription,
)
from kafkapy.common.protocol.messages.group_metadata_key import GroupMetadataKey
from kafkapy.common.protocol.messages.group_metadata_value import GroupMetadataValue
from kafkapy.common.protocol.messages.offset_commit_key import OffsetCommitKey
from kafkapy.common.protocol.messages.offset_commit_value import OffsetCommitValue
from kafkapy.common.protocol.schema import Message
from kafkapy.common.record.record import Record
from kafkapy.coordinator.transaction import transaction_log
from kafkapy.tools.message_json import json_line, message_to_json

Decoded = tuple[str | None, str | None]
Decoder = Callable[[Record], Decoded]
BytesDecoder = Callable[[bytes], str]

_DELETED = "<DELETE>"
_VERSION = struct.Struct(">h")
_INT32 = struct.Struct(">i")
_INT64 = struct.Struct(">q")
_CONSUMER_PROTOCOL_TYPE = "consumer"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


# By the last part of the names of Kafka's classes.
BYTES_DECODERS: dict[str, BytesDecoder] = {
    "StringDecoder": _text,
    "IntegerDecoder": lambda data: str(_INT32.unpack(data)[0]),
    "LongDecoder": lambda data: str(_INT64.unpack(data)[0]),
}


def data_decoder(key_decoder: BytesDecoder, value_decoder: BytesDecoder) -> Decoder:
    def decode(record: Record) -> Decoded:
        try:
            return (
                None if record.key is None else key_decoder(record.key),
                None if record.value is None else value_decoder(record.value),
            )
        except struct.error as e:
            raise KafkaError(f"The record at offset {record.offset} cannot be decoded: {e}") from e

    return decode


def decode_offsets(record: Record) -> Decoded:
    """A record of __consumer_offsets as JSON.

    Ports: kafka.tools.DumpLogSegments.OffsetsMessageParser
    """
    if record.key is None:
        raise KafkaError(
            f"The record at offset {record.offset} has no key, so it is not of __consumer_offsets"
        )
    try:
        (key_version,) = _VERSION.unpack_from(record.key)
        key_and_value = _OFFSETS_MESSAGES.get(key_version)
        if key_and_value is None:
            return f"Unknown record type {key_version} at offset {record.offset}, skipping.", None
        key_class, value_class = key_and_value
        key, _ = key_class.decode_from(record.key, _VERSION.size, key_version)
        shown = json_line({"type": str(key_version), "data": message_to_json(key, key_version)})
        if record.value is None:
            return shown, _DELETED
        (version,) = _VERSION.unpack_from(record.value)
        value, _ = value_class.decode_from(record.value, _VERSION.size, version)
        data = message_to_json(value, version)
        if isinstance(value, GroupMetadataValue):
            _show_members(value, data)
        return shown, json_line({"version": str(version), "data": data})
    except (KafkaError, struct.error) as e:
        return f"Error at offset {record.offset}, skipping. {e}", None


_OFFSETS_MESSAGES: dict[int, tuple[type[Message], type[Message]]] = {
    0: (OffsetCommitKey, OffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
}


def _show_members(value: GroupMetadataValue, data: dict[str, Any]) -> None:
    """What members of consumer groups subscribe to and are assigned stands for its bytes."""
    if value.protocol_type != _CONSUMER_PROTOCOL_TYPE:
        return
    for member, shown in zip(value.members, data["members"], strict=True):
        for name, message, content in (
            ("subscription", ConsumerProtocolSubscription, member.subscription),
            ("assignment", ConsumerProtocolAssignment, member.assignment),
        ):
            if len(content) > 0:
                shown[name] = _consumer_protocol(message, content)


def _consumer_protocol(message_class: type[Message], content: bytes) -> dict[str, Any]:
    (written,) = _VERSION.unpack_from(content)
    # A newer version only adds fields at the end.
    version = min(written, message_class.VERSIONS.highest)
    message, _ = message_class.decode_from(content, _VERSION.size, version)
    return message_to_json(message, version)


def decode_transaction_log(record: Record) -> Decoded:
    """A record of __transaction_state.

    Ports: kafka.tools.DumpLogSegments.TransactionLogMessageParser
    """
    if record.key is None:
        raise KafkaError(
            f"The record at offset {record.offset} has no key, so it is not of __transaction_state"
        )
    try:
        transactional_id = transaction_log.read_key(record.key)
    except transaction_log.UnknownRecordVersionError:
        (version,) = _VERSION.unpack_from(record.key)
        return f"unknown::version={version}", ""
    except ProtocolError as e:
        raise KafkaError(f"The record at offset {record.offset}: {e}") from e
    key = f"transaction_metadata::transactionalId={transactional_id}"
    if record.value is None:
        return key, _DELETED
    try:
        metadata = transaction_log.read_value(transactional_id, record.value)
    except ProtocolError as e:
        raise KafkaError(f"The record at offset {record.offset}: {e}") from e
    partitions = ",".join(map(str, sorted(metadata.topic_partitions)))
    return key, (
        f"producerId:{metadata.producer_id},producerEpoch:{metadata.producer_epoch},"
        f"state={metadata.state.label},partitions=[{partitions}],"
        f"txnLastUpdateTimestamp={metadata.txn_last_update_timestamp},"
        f"txnTimeoutMs={metadata.txn_timeout_ms}"
    )
