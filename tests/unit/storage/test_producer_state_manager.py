"""Producer state: snapshots on disk, transactions, expiry."""

from pathlib import Path

import pytest

from kafkapy.common.errors import InvalidTxnStateError, TransactionCoordinatorFencedError
from kafkapy.common.record.control_record import ControlRecordType, EndTransactionMarker
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.types import TopicPartition
from kafkapy.storage.append_origin import AppendOrigin
from kafkapy.storage.file_system import OsFileSystem
from kafkapy.storage.producer_snapshot_file import ProducerSnapshotFile
from kafkapy.storage.producer_state_entry import BatchMetadata, ProducerStateEntry
from kafkapy.storage.producer_state_manager import ProducerStateManager
from kafkapy.storage.producer_state_manager_config import ProducerStateManagerConfig
from kafkapy.storage.storage_errors import CorruptSnapshotError
from kafkapy.storage.transaction_index import CompletedTxn
from tests.unit.storage.harness import TIMESTAMP, records

DAY_MS = 86_400_000


@pytest.fixture
def manager(tmp_path: Path) -> ProducerStateManager:
    return open_manager(tmp_path)


def open_manager(path: Path) -> ProducerStateManager:
    return ProducerStateManager(
        TopicPartition("t", 0),
        str(path),
        config=ProducerStateManagerConfig(DAY_MS),
        file_system=OsFileSystem(),
    )


def apply(
    manager: ProducerStateManager,
    batch: MemoryRecords,
    *,
    origin: AppendOrigin = AppendOrigin.CLIENT,
) -> None:
    (only,) = batch.batches()
    info = manager.prepare_update(only.producer_id, origin)
    info.append(only)
    manager.update(info)
    manager.update_map_end_offset(only.last_offset + 1)


def end(
    manager: ProducerStateManager,
    producer_id: int,
    *,
    offset: int,
    commit: bool = True,
    coordinator_epoch: int = 0,
) -> CompletedTxn | None:
    info = manager.prepare_update(producer_id, AppendOrigin.COORDINATOR)
    kind = ControlRecordType.COMMIT if commit else ControlRecordType.ABORT
    completed = info.append_end_txn_marker(
        EndTransactionMarker(kind, coordinator_epoch),
        producer_epoch=0,
        offset=offset,
        timestamp=TIMESTAMP,
    )
    manager.update(info)
    if completed is not None:
        manager.complete_txn(completed)
    manager.update_map_end_offset(offset + 1)
    return completed


def transactional(manager: ProducerStateManager, producer_id: int, offset: int) -> None:
    sequence = manager.last_entry(producer_id)
    apply(
        manager,
        records(
            "x",
            offset=offset,
            producer_id=producer_id,
            producer_epoch=0,
            sequence=0 if sequence is None else sequence.last_seq + 1,
            transactional=True,
        ),
    )


# --- snapshots


def test_snapshot_layout_is_kafkas(tmp_path: Path) -> None:
    file = ProducerSnapshotFile(f"{tmp_path}/{5:020d}.snapshot", OsFileSystem())
    entry = ProducerStateEntry(
        1,
        producer_epoch=2,
        coordinator_epoch=7,
        last_timestamp=6,
        current_txn_first_offset=8,
        first_batch=BatchMetadata(3, 4, 5, 6),
    )

    file.write([entry], sync=True)

    data = Path(file.path).read_bytes()
    assert data[:2].hex() == "0001"
    assert data[6:].hex() == (
        "00000001"
        "0000000000000001"
        "0002"
        "00000003"
        "0000000000000004"
        "00000005"
        "0000000000000006"
        "00000007"
        "0000000000000008"
    )
    (found,) = file.read()
    assert (found.producer_id, found.producer_epoch, found.last_seq) == (1, 2, 3)
    assert (found.last_data_offset, found.last_offset_delta, found.last_timestamp) == (4, 5, 6)
    assert (found.coordinator_epoch, found.current_txn_first_offset) == (7, 8)


def test_every_flipped_byte_of_a_snapshot_is_noticed(tmp_path: Path) -> None:
    file = ProducerSnapshotFile(f"{tmp_path}/{5:020d}.snapshot", OsFileSystem())
    file.write([ProducerStateEntry(i, producer_epoch=1) for i in range(2)], sync=False)
    good = Path(file.path).read_bytes()

    for position in range(len(good)):
        Path(file.path).write_bytes(
            good[:position] + bytes([good[position] ^ 0x10]) + good[position + 1 :]
        )
        with pytest.raises(CorruptSnapshotError):
            file.read()


def test_cut_snapshot_is_noticed(tmp_path: Path) -> None:
    file = ProducerSnapshotFile(f"{tmp_path}/{5:020d}.snapshot", OsFileSystem())
    file.write([ProducerStateEntry(1, producer_epoch=1)], sync=False)
    good = Path(file.path).read_bytes()

    for size in range(len(good)):
        Path(file.path).write_bytes(good[:size])
        with pytest.raises(CorruptSnapshotError):
            file.read()


def test_state_comes_back_from_the_latest_snapshot(tmp_path: Path) -> None:
    manager = open_manager(tmp_path)
    apply(manager, records("a", "b", offset=0, producer_id=1, producer_epoch=3, sequence=0))
    transactional(manager, 2, 2)
    manager.take_snapshot()
    again = manager.take_snapshot()

    manager = open_manager(tmp_path)
    manager.truncate_and_reload(log_start_offset=0, log_end_offset=3, now_ms=TIMESTAMP)

    assert again is None
    assert manager.map_end_offset == 3
    entry = manager.last_entry(1)
    assert entry is not None
    assert (entry.producer_epoch, entry.last_seq, entry.last_data_offset) == (3, 1, 1)
    assert manager.first_unstable_offset is not None
    assert manager.first_unstable_offset.message_offset == 2


def test_corrupt_snapshot_falls_back_to_the_one_before(tmp_path: Path) -> None:
    manager = open_manager(tmp_path)
    apply(manager, records("a", offset=0, producer_id=1, producer_epoch=0, sequence=0))
    manager.take_snapshot()
    apply(manager, records("a", offset=1, producer_id=1, producer_epoch=0, sequence=1))
    manager.take_snapshot()
    (tmp_path / f"{2:020d}.snapshot").write_bytes(b"broken")

    manager = open_manager(tmp_path)
    manager.truncate_and_reload(log_start_offset=0, log_end_offset=2, now_ms=TIMESTAMP)

    assert manager.map_end_offset == 1
    assert not (tmp_path / f"{2:020d}.snapshot").exists()


def test_truncation_removes_snapshots_outside_the_log(tmp_path: Path) -> None:
    manager = open_manager(tmp_path)
    for i in range(4):
        apply(manager, records("a", offset=i, producer_id=1, producer_epoch=0, sequence=i))
        manager.take_snapshot()

    manager.truncate_and_reload(log_start_offset=1, log_end_offset=3, now_ms=TIMESTAMP)

    assert sorted(p.name for p in tmp_path.iterdir()) == [f"{i:020d}.snapshot" for i in (2, 3)]
    entry = manager.last_entry(1)
    assert entry is not None and entry.last_seq == 2


def test_stray_snapshots_go_except_the_last_beyond_all_segments(tmp_path: Path) -> None:
    for offset in (1, 2, 5, 7, 9):
        ProducerSnapshotFile(f"{tmp_path}/{offset:020d}.snapshot", OsFileSystem()).write(
            [], sync=False
        )
    manager = open_manager(tmp_path)

    manager.remove_stray_snapshots([2, 5])

    assert sorted(p.name for p in tmp_path.iterdir()) == [f"{i:020d}.snapshot" for i in (2, 5, 9)]


def test_expired_producers_are_not_loaded(tmp_path: Path) -> None:
    manager = open_manager(tmp_path)
    apply(manager, records("a", offset=0, producer_id=1, producer_epoch=0, sequence=0))
    transactional(manager, 2, 1)
    manager.take_snapshot()

    manager = open_manager(tmp_path)
    manager.truncate_and_reload(log_start_offset=0, log_end_offset=2, now_ms=TIMESTAMP + DAY_MS)

    assert list(manager.active_producers) == [2]


# --- transactions


def test_first_unstable_offset_is_the_oldest_open_or_unreplicated(
    manager: ProducerStateManager,
) -> None:
    transactional(manager, 1, 0)
    transactional(manager, 2, 5)
    end(manager, 1, offset=8)

    def unstable() -> int | None:
        found = manager.first_unstable_offset
        return None if found is None else found.message_offset

    assert unstable() == 0
    manager.on_high_watermark_updated(8)
    assert unstable() == 0
    manager.on_high_watermark_updated(9)
    assert unstable() == 5
    end(manager, 2, offset=9)
    manager.on_high_watermark_updated(10)
    assert unstable() is None


def test_last_stable_offset_of_a_completed_transaction(manager: ProducerStateManager) -> None:
    transactional(manager, 1, 0)
    transactional(manager, 2, 5)

    assert manager.last_stable_offset(CompletedTxn(1, 0, 8, False)) == 5
    assert manager.last_stable_offset(CompletedTxn(2, 5, 8, False)) == 0
    end(manager, 1, offset=8)
    assert manager.last_stable_offset(CompletedTxn(2, 5, 9, False)) == 10


def test_marker_without_data_completes_nothing(manager: ProducerStateManager) -> None:
    assert end(manager, 1, offset=3) is None
    assert manager.first_unstable_offset is None


def test_aborted_transaction_is_reported_as_such(manager: ProducerStateManager) -> None:
    transactional(manager, 1, 4)

    assert end(manager, 1, offset=6, commit=False) == CompletedTxn(1, 4, 6, True)


def test_marker_of_an_older_coordinator_is_fenced(manager: ProducerStateManager) -> None:
    transactional(manager, 1, 0)
    end(manager, 1, offset=1, coordinator_epoch=5)

    with pytest.raises(TransactionCoordinatorFencedError):
        end(manager, 1, offset=2, coordinator_epoch=4)


def test_plain_batch_inside_a_transaction_is_refused(manager: ProducerStateManager) -> None:
    transactional(manager, 1, 0)

    with pytest.raises(InvalidTxnStateError):
        apply(manager, records("x", offset=1, producer_id=1, producer_epoch=0, sequence=1))


def test_replicated_records_are_taken_without_sequence_checks(
    manager: ProducerStateManager,
) -> None:
    apply(manager, records("x", offset=0, producer_id=1, producer_epoch=5, sequence=0))

    apply(
        manager,
        records("x", offset=1, producer_id=1, producer_epoch=4, sequence=77),
        origin=AppendOrigin.REPLICATION,
    )

    entry = manager.last_entry(1)
    assert entry is not None and entry.last_seq == 77


def test_producer_with_an_open_transaction_does_not_expire(manager: ProducerStateManager) -> None:
    apply(manager, records("x", offset=0, producer_id=1, producer_epoch=0, sequence=0))
    transactional(manager, 2, 1)

    manager.remove_expired_producers(TIMESTAMP + DAY_MS - 1)
    before = set(manager.active_producers)
    manager.remove_expired_producers(TIMESTAMP + DAY_MS)

    assert (before, set(manager.active_producers)) == ({1, 2}, {2})


def test_full_truncation_forgets_everything(tmp_path: Path) -> None:
    manager = open_manager(tmp_path)
    transactional(manager, 1, 0)
    manager.take_snapshot()

    manager.truncate_fully_and_start_at(100)

    assert (manager.is_empty, manager.map_end_offset, list(tmp_path.iterdir())) == (True, 100, [])
