import pytest

from kafkapy.common.protocol.codec import ProtocolError
from kafkapy.common.protocol.messages.transaction_log_value import TransactionLogValue
from kafkapy.common.types import TopicPartition
from kafkapy.coordinator.transaction import transaction_log
from kafkapy.coordinator.transaction.transaction_log import UnknownRecordVersionError
from kafkapy.coordinator.transaction.transaction_metadata import TxnTransitMetadata
from kafkapy.coordinator.transaction.transaction_state import TransactionState

PARTITIONS = frozenset(TopicPartition(t, p) for t, p in [("b", 3), ("a", 1), ("a", 0)])


def transit(state: TransactionState, partitions: frozenset = frozenset()) -> TxnTransitMetadata:
    return TxnTransitMetadata(
        producer_id=7,
        last_producer_id=6,
        producer_epoch=3,
        last_producer_epoch=2,
        txn_timeout_ms=60_000,
        txn_state=state,
        topic_partitions=partitions,
        txn_start_timestamp=1_000,
        txn_last_update_timestamp=2_000,
    )


def test_key_is_kafkas() -> None:
    assert transaction_log.key_to_bytes("id") == bytes.fromhex("0000 0002 6964")
    assert transaction_log.read_key(bytes.fromhex("0000 0002 6964")) == "id"


def test_value_is_kafkas() -> None:
    assert transaction_log.value_to_bytes(transit(TransactionState.ONGOING, PARTITIONS)).hex(
        " ", 2
    ).replace(" ", "") == (
        "0000"  # version
        "0000000000000007"  # producer id
        "0003"  # producer epoch
        "0000ea60"  # time-out
        "01"  # Ongoing
        "00000002"
        "000161"
        "00000002"
        "00000000"
        "00000001"
        "000162"
        "00000001"
        "00000003"
        "00000000000007d0"  # last update
        "00000000000003e8"  # start
    )


@pytest.mark.parametrize("state", [s for s in TransactionState if s is not TransactionState.EMPTY])
def test_what_is_written_is_read_again(state: TransactionState) -> None:
    metadata = transaction_log.read_value(
        "id", transaction_log.value_to_bytes(transit(state, PARTITIONS))
    )

    assert (metadata.transactional_id, metadata.state) == ("id", state)
    assert (metadata.producer_id, metadata.producer_epoch) == (7, 3)
    assert metadata.txn_timeout_ms == 60_000
    assert metadata.topic_partitions == PARTITIONS
    assert (metadata.txn_start_timestamp, metadata.txn_last_update_timestamp) == (1_000, 2_000)
    assert metadata.pending_state is None


def test_empty_transaction_has_no_partitions() -> None:
    value = transaction_log.value_to_bytes(transit(TransactionState.EMPTY))

    assert TransactionLogValue.decode(value[2:], 0).transaction_partitions is None
    assert transaction_log.read_value("id", value).topic_partitions == set()
    with pytest.raises(ValueError, match="has partitions"):
        transaction_log.value_to_bytes(transit(TransactionState.EMPTY, PARTITIONS))


def test_value_of_a_cluster_with_flexible_records_is_read() -> None:
    value = TransactionLogValue(
        producer_id=7,
        previous_producer_id=6,
        producer_epoch=3,
        transaction_timeout_ms=1,
        transaction_status=TransactionState.COMPLETE_COMMIT,
        transaction_partitions=[],
        client_transaction_version=2,
    )

    metadata = transaction_log.read_value("id", b"\x00\x01" + value.encode(1))

    assert metadata.state is TransactionState.COMPLETE_COMMIT
    assert (metadata.producer_id, metadata.last_producer_id) == (7, 6)


@pytest.mark.parametrize("version", [-1, 1, 7])
def test_key_of_a_newer_release_is_known_as_such(version: int) -> None:
    with pytest.raises(UnknownRecordVersionError):
        transaction_log.read_key(version.to_bytes(2, "big", signed=True) + b"\x00\x00")


@pytest.mark.parametrize("version", [-1, 2])
def test_value_of_a_newer_release_is_known_as_such(version: int) -> None:
    with pytest.raises(UnknownRecordVersionError):
        transaction_log.read_value("id", version.to_bytes(2, "big", signed=True) + bytes(99))


@pytest.mark.parametrize("length", range(0, 40))
def test_record_cut_short_is_a_protocol_error(length: int) -> None:
    value = transaction_log.value_to_bytes(transit(TransactionState.ONGOING, PARTITIONS))

    with pytest.raises(ProtocolError):
        transaction_log.read_value("id", value[:length])


def test_unknown_state_is_a_protocol_error() -> None:
    value = bytearray(transaction_log.value_to_bytes(transit(TransactionState.ONGOING)))
    value[16] = 8

    with pytest.raises(ProtocolError, match="state 8"):
        transaction_log.read_value("id", bytes(value))
