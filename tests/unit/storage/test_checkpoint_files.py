"""The small files of a log directory, byte for byte."""

from pathlib import Path
from uuid import UUID

import pytest

from kafkapy.common.errors import InconsistentTopicIdError, KafkaError, KafkaStorageError
from kafkapy.common.types import TopicPartition
from kafkapy.storage.broker_metadata_checkpoint import (
    BrokerMetadata,
    BrokerMetadataCheckpoint,
    load_broker_metadata,
)
from kafkapy.storage.clean_shutdown_file import UNKNOWN_BROKER_EPOCH, CleanShutdownFile
from kafkapy.storage.file_system import OsFileSystem, atomic_write
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel
from kafkapy.storage.log_dir_lock import LogDirLock
from kafkapy.storage.log_file_utils import (
    log_delete_dir_name,
    log_file,
    log_future_dir_name,
    log_stray_dir_name,
    offset_from_file_name,
    parse_topic_partition_name,
)
from kafkapy.storage.offset_checkpoint_file import OffsetCheckpointFile
from kafkapy.storage.partition_metadata_file import PartitionMetadataFile
from kafkapy.storage.storage_errors import InconsistentBrokerMetadataError, LogDirLockedError
from tests.helpers.crashing_fs import CrashingFileSystem

TOPIC_ID = UUID("0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9")


def offset_checkpoint(path: Path) -> tuple[OffsetCheckpointFile, LogDirFailureChannel]:
    failures = LogDirFailureChannel()
    file = OffsetCheckpointFile(
        str(path / "recovery-point-offset-checkpoint"),
        file_system=OsFileSystem(),
        log_dir_failure_channel=failures,
    )
    return file, failures


def test_offset_checkpoint_format(tmp_path: Path) -> None:
    file, _ = offset_checkpoint(tmp_path)

    file.write({TopicPartition("foo", 0): 5, TopicPartition("bar.baz", 12): 1 << 40})

    assert Path(file.path).read_text() == "0\n2\nfoo 0 5\nbar.baz 12 1099511627776\n"
    assert file.read() == {TopicPartition("foo", 0): 5, TopicPartition("bar.baz", 12): 1 << 40}
    assert list(tmp_path.iterdir()) == [Path(file.path)]


def test_missing_offset_checkpoint_is_empty(tmp_path: Path) -> None:
    assert offset_checkpoint(tmp_path)[0].read() == {}


def test_file_kafka_made_before_its_first_checkpoint_is_empty(tmp_path: Path) -> None:
    file, failures = offset_checkpoint(tmp_path)
    Path(file.path).touch()

    assert file.read() == {}
    assert not failures.has_offline_log_dir(str(tmp_path))


@pytest.mark.parametrize(
    "text", ["\n", "0\n", "0\n1\n", "5\n0\n", "0\n1\nfoo 0\n", "0\n1\nfoo x 1\n", "0\n\xff"]
)
def test_malformed_offset_checkpoint_takes_the_directory_offline(tmp_path: Path, text: str) -> None:
    file, failures = offset_checkpoint(tmp_path)
    Path(file.path).write_bytes(text.encode("latin-1"))

    with pytest.raises(KafkaStorageError):
        file.read()

    assert failures.has_offline_log_dir(str(tmp_path))


def test_atomic_write_syncs_content_before_renaming(tmp_path: Path) -> None:
    file_system = CrashingFileSystem()
    path = str(tmp_path / "f")
    atomic_write(file_system, path, b"old")

    for operation in ("write", "fsync", "rename", "open"):
        file_system.fail(operation)
        with pytest.raises(OSError):
            atomic_write(file_system, path, b"new")
        file_system.heal()
        assert Path(path).read_bytes() == b"old"
    atomic_write(file_system, path, b"new")
    file_system.crash()

    assert Path(path).read_bytes() == b"new"


def partition_metadata(path: Path) -> PartitionMetadataFile:
    return PartitionMetadataFile(
        str(path), file_system=OsFileSystem(), log_dir_failure_channel=LogDirFailureChannel()
    )


def test_partition_metadata_format(tmp_path: Path) -> None:
    file = partition_metadata(tmp_path)

    file.record(TOPIC_ID)
    existed_before = file.exists()
    file.maybe_flush()

    assert not existed_before
    assert Path(file.path).read_text() == "version: 0\ntopic_id: ChssPU5fYHGCk6S1xtfo-Q"
    assert file.read() == TOPIC_ID


def test_partition_metadata_refuses_a_second_topic(tmp_path: Path) -> None:
    file = partition_metadata(tmp_path)
    file.record(TOPIC_ID)

    with pytest.raises(InconsistentTopicIdError):
        file.record(UUID(int=77))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "version: 1\ntopic_id: AAAA",
        "version: 0\ntopic_id: !",
        "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
    ],
)
def test_malformed_partition_metadata_is_a_storage_error(tmp_path: Path, text: str) -> None:
    file = partition_metadata(tmp_path)
    Path(file.path).write_text(text)

    with pytest.raises(KafkaStorageError):
        file.read()


def test_meta_properties_format(tmp_path: Path) -> None:
    checkpoint = BrokerMetadataCheckpoint(str(tmp_path), OsFileSystem())
    before = checkpoint.read()

    checkpoint.write(BrokerMetadata(3, "abc-DEF_123"))

    assert before is None
    lines = (tmp_path / "meta.properties").read_text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "broker.id=3",
        "version=0",
        "cluster.id=abc-DEF_123",
    ]
    assert checkpoint.read() == BrokerMetadata(3, "abc-DEF_123")


def test_meta_properties_as_java_writes_them(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text(
        "#\n#Mon Nov 16 02:40:00 UTC 2026\ncluster.id=x\\=y\nversion=0\nbroker.id=1001\n"
    )

    found = BrokerMetadataCheckpoint(str(tmp_path), OsFileSystem()).read()

    assert found == BrokerMetadata(1001, "x=y")


@pytest.mark.parametrize(
    "text", ["version=1\nbroker.id=1\n", "version=0\n", "version=0\nbroker.id=x\n"]
)
def test_malformed_meta_properties_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "meta.properties").write_text(text)

    with pytest.raises(InconsistentBrokerMetadataError):
        BrokerMetadataCheckpoint(str(tmp_path), OsFileSystem()).read()


def test_directories_of_two_brokers_are_refused(tmp_path: Path) -> None:
    dirs = [tmp_path / "a", tmp_path / "b", tmp_path / "new"]
    for i, path in enumerate(dirs):
        path.mkdir()
        if path.name != "new":
            BrokerMetadataCheckpoint(str(path), OsFileSystem()).write(BrokerMetadata(i, "c"))

    agreed = load_broker_metadata([str(dirs[0]), str(dirs[2])], OsFileSystem())

    assert agreed.metadata == BrokerMetadata(0, "c")
    with pytest.raises(InconsistentBrokerMetadataError):
        load_broker_metadata(map(str, dirs), OsFileSystem())


def test_clean_shutdown_file(tmp_path: Path) -> None:
    file = CleanShutdownFile(str(tmp_path), OsFileSystem())
    before = (file.exists(), file.read_broker_epoch())

    file.write(17)

    assert before == (False, UNKNOWN_BROKER_EPOCH)
    assert (tmp_path / ".kafka_cleanshutdown").read_text() == '{"version":0,"brokerEpoch":17}'
    assert (file.exists(), file.read_broker_epoch()) == (True, 17)
    file.delete()
    file.delete()
    assert not file.exists()


@pytest.mark.parametrize("text", ["", "garbage", "[]", "{}"])
def test_clean_shutdown_file_of_older_brokers(tmp_path: Path, text: str) -> None:
    (tmp_path / ".kafka_cleanshutdown").write_text(text)

    assert CleanShutdownFile(str(tmp_path), OsFileSystem()).read_broker_epoch() == -1


def test_directory_can_be_locked_once(tmp_path: Path) -> None:
    lock = LogDirLock(str(tmp_path))

    with pytest.raises(LogDirLockedError, match=str(tmp_path)):
        LogDirLock(str(tmp_path))
    lock.close()
    LogDirLock(str(tmp_path)).close()


def test_file_names() -> None:
    assert log_file("/d", 42) == "/d/00000000000000000042.log"
    assert offset_from_file_name("/d/00000000000000000042.log.deleted") == 42
    assert offset_from_file_name("leader-epoch-checkpoint") is None
    assert offset_from_file_name("partition.metadata") is None


@pytest.mark.parametrize("make", [log_delete_dir_name, log_future_dir_name, log_stray_dir_name])
def test_directory_names_can_be_parsed_back(make: object) -> None:
    partition = TopicPartition("my.topic-with-1", 7)

    assert parse_topic_partition_name(make(partition)) == partition  # type: ignore[operator]
    assert make(partition) != make(partition)  # type: ignore[operator]


def test_delete_name_of_a_long_topic_fits_a_file_name() -> None:
    name = log_delete_dir_name(TopicPartition("x" * 249, 123456))

    assert len(name) == 255
    assert parse_topic_partition_name(name).partition == 123456


@pytest.mark.parametrize(
    "name", ["topic", "-0", "topic-", "topic-x", "topic-0-delete", "a-1.zz-future"]
)
def test_other_directories_are_refused(name: str) -> None:
    with pytest.raises(KafkaError, match="partition"):
        parse_topic_partition_name(f"/logs/{name}")
