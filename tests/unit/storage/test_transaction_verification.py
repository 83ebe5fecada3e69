"""The first append of a transaction needs the proof that its coordinator knows of it."""

from pathlib import Path

import pytest

from kafkapy.common.errors import InvalidTxnStateError, OutOfOrderSequenceError
from kafkapy.common.record.control_record import ControlRecordType
from kafkapy.common.types import TopicPartition
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.file_system import OsFileSystem
from kafkapy.storage.producer_state_manager import ProducerStateManager
from kafkapy.storage.producer_state_manager_config import ProducerStateManagerConfig
from kafkapy.storage.verification_state_entry import VerificationGuard
from tests.helpers.mock_time import MockTime
from tests.helpers.records import end_txn_marker, records
from tests.unit.replication.harness import ReplicaHarness

A = TopicPartition("data", 0)
PRODUCER = 7


@pytest.fixture
def log(tmp_path, time: MockTime):
    broker = ReplicaHarness(tmp_path, time, transaction_verification=True)
    broker.lead(A)
    log = broker.log_manager.get_log(A)
    yield log
    broker.close()


def data(sequence: int = 0, epoch: int = 0, *, transactional: bool = True):
    return records(
        "a",
        producer_id=PRODUCER,
        producer_epoch=epoch,
        sequence=sequence,
        transactional=transactional,
    )


def marker(epoch: int = 0):
    return end_txn_marker(ControlRecordType.ABORT, producer_id=PRODUCER, producer_epoch=epoch)


def start(log, sequence: int = 0, epoch: int = 0) -> VerificationGuard:
    return log.maybe_start_transaction_verification(PRODUCER, sequence=sequence, epoch=epoch)


def append(log, batch, guard=VerificationGuard.SENTINEL, origin=AppendOrigin.CLIENT):
    return log.append_as_leader(batch, 0, origin=origin, verification_guard=guard)


def test_unverified_append_is_refused_and_leaves_nothing(log) -> None:
    with pytest.raises(InvalidTxnStateError):
        append(log, data())

    assert (log.log_end_offset, log.active_producers()) == (0, ())


def test_verified_append_opens_the_transaction_for_those_that_follow(log) -> None:
    append(log, data(0), start(log))

    append(log, data(1))

    assert log.log_end_offset == 2
    assert start(log) is VerificationGuard.SENTINEL


def test_guard_of_another_verification_does_not_pass(log) -> None:
    start(log)

    with pytest.raises(InvalidTxnStateError):
        append(log, data(), VerificationGuard())


def test_verifications_of_one_transaction_share_their_guard(log) -> None:
    assert start(log) is start(log)


def test_marker_takes_the_guard_away(log) -> None:
    stale = start(log)
    append(log, marker(), origin=AppendOrigin.COORDINATOR)

    with pytest.raises(InvalidTxnStateError):
        append(log, data(), stale)

    fresh = start(log)
    with pytest.raises(InvalidTxnStateError):
        append(log, data(), stale)
    append(log, data(), fresh)


def test_next_transaction_is_verified_anew(log) -> None:
    append(log, data(0), start(log))
    append(log, marker(), origin=AppendOrigin.COORDINATOR)

    with pytest.raises(InvalidTxnStateError):
        append(log, data(1))


def test_later_batch_waits_for_the_earlier_of_the_same_verification(log) -> None:
    guard = start(log, sequence=5)
    start(log, sequence=0)

    with pytest.raises(OutOfOrderSequenceError):
        append(log, data(5), guard)

    append(log, data(0), guard)
    append(log, data(1))


def test_later_epoch_begins_its_own_order(log) -> None:
    start(log, sequence=0, epoch=0)

    append(log, data(4, epoch=1), start(log, sequence=4, epoch=1))

    assert log.log_end_offset == 1


def test_markers_and_plain_records_need_no_proof(log) -> None:
    append(log, marker(), origin=AppendOrigin.COORDINATOR)
    append(log, data(transactional=False))

    assert log.log_end_offset == 2


def test_follower_takes_what_the_leader_has_accepted(log) -> None:
    log.append_as_follower(data())

    assert log.log_end_offset == 1


def test_coordinators_records_need_the_guard_like_a_clients(log) -> None:
    start(log)
    with pytest.raises(InvalidTxnStateError):
        append(log, data(), origin=AppendOrigin.COORDINATOR)

    append(log, data(), start(log), AppendOrigin.COORDINATOR)

    assert log.log_end_offset == 1


def test_abandoned_verification_expires(tmp_path: Path) -> None:
    manager = ProducerStateManager(
        TopicPartition("t", 0),
        str(tmp_path),
        config=ProducerStateManagerConfig(1_000),
        file_system=OsFileSystem(),
    )
    guard = manager.maybe_start_transaction_verification(PRODUCER, sequence=0, epoch=0, now_ms=0)

    manager.remove_expired_producers(999)
    assert manager.verification_guard(PRODUCER) is guard
    manager.remove_expired_producers(1_000)

    assert manager.verification_guard(PRODUCER) is VerificationGuard.SENTINEL
