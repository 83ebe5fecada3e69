"""The records of __transaction_state.

key:   version int16 | TransactionLogKey
value: version int16 | TransactionLogValue, or none: the transactional id has expired
"""

from __future__ import annotations

import struct

from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.protocol.messages.transaction_log_key import TransactionLogKey
from kafkapy.common.protocol.messages.transaction_log_value import TransactionLogValue
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.transaction.transaction_metadata import (
    TransactionMetadata,
    TxnTransitMetadata,
)
from kafkapy.coordinator.transaction.transaction_state import TransactionState

_VERSION = struct.Struct(">h")
_KEY_VERSION = 0
# Version 1 is only written once the whole cluster has the feature transaction.version.
_VALUE_VERSION = 0
_HIGHEST_VALUE_VERSION = 1


class UnknownRecordVersionError(ProtocolError):
    """A record of a newer release."""


def key_to_bytes(transactional_id: str) -> bytes:
    key = TransactionLogKey(transactional_id=transactional_id)
    return _VERSION.pack(_KEY_VERSION) + key.encode(_KEY_VERSION)


def value_to_bytes(metadata: TxnTransitMetadata) -> bytes:
    """Ports: kafka.coordinator.transaction.TransactionLog.valueToBytes"""
    partitions: dict[str, list[int]] | None = None
    if metadata.txn_state is not TransactionState.EMPTY:
        partitions = {}
        for topic, partition in sorted(metadata.topic_partitions):
            partitions.setdefault(topic, []).append(partition)
    elif metadata.topic_partitions:
        raise ValueError(f"{metadata} is empty, but has partitions")
    value = TransactionLogValue(
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        transaction_timeout_ms=metadata.txn_timeout_ms,
        transaction_status=metadata.txn_state,
        transaction_last_update_timestamp_ms=metadata.txn_last_update_timestamp,
        transaction_start_timestamp_ms=metadata.txn_start_timestamp,
        transaction_partitions=None
        if partitions is None
        else [
            TransactionLogValue.PartitionsSchema(topic=topic, partition_ids=ids)
            for topic, ids in partitions.items()
        ],
    )
    return _VERSION.pack(_VALUE_VERSION) + value.encode(_VALUE_VERSION)


def read_key(key: bytes) -> str:
    """The transactional id. UnknownRecordVersionError for a record to be skipped."""
    version = _read_version(key)
    if version != _KEY_VERSION:
        raise UnknownRecordVersionError(f"key version {version}")
    return TransactionLogKey.decode(memoryview(key)[_VERSION.size :], version).transactional_id


def read_value(transactional_id: str, value: bytes) -> TransactionMetadata:
    """Ports: kafka.coordinator.transaction.TransactionLog.readTxnRecordValue"""
    version = _read_version(value)
    if not 0 <= version <= _HIGHEST_VALUE_VERSION:
        raise UnknownRecordVersionError(f"value version {version}")
    decoded = TransactionLogValue.decode(memoryview(value)[_VERSION.size :], version)
    state = TransactionState.from_id(decoded.transaction_status)
    if state is None:
        raise ProtocolError(f"unknown transaction state {decoded.transaction_status}")
    return TransactionMetadata(
        transactional_id,
        producer_id=decoded.producer_id,
        producer_epoch=decoded.producer_epoch,
        last_producer_id=decoded.previous_producer_id,
        txn_timeout_ms=decoded.transaction_timeout_ms,
        state=state,
        topic_partitions=[
            TopicPartition(partitions.topic, partition)
            for partitions in decoded.transaction_partitions or ()
            for partition in partitions.partition_ids
        ]
        if state is not TransactionState.EMPTY
        else (),
        txn_start_timestamp=decoded.transaction_start_timestamp_ms,
        txn_last_update_timestamp=decoded.transaction_last_update_timestamp_ms,
    )


def _read_version(data: bytes) -> int:
    if len(data) < _VERSION.size:
        raise ProtocolError("a record of the transaction log is cut short")
    version: int = _VERSION.unpack_from(data)[0]
    return version
