"""The disk seam, the failure channel and the topic meters."""

import errno
import os
from pathlib import Path

import pytest

from kafkapy.common.errors import KafkaStorageError
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.storage.broker_topic_stats import BrokerTopicStats
from kafkapy.storage.file_system import OsFileSystem, write_fully
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel
from tests.helpers.crashing_fs import CrashingFileSystem
from tests.unit.storage.harness import StorageHarness


def test_channel_reads_and_writes_at_positions(tmp_path: Path) -> None:
    channel = OsFileSystem().open(str(tmp_path / "f"), create=True)

    write_fully(channel, b"hello world", 0)
    write_fully(channel, memoryview(b"W"), 6)
    channel.truncate(8)

    assert (channel.read_at(100, 0), channel.read_at(2, 6), channel.size()) == (
        b"hello Wo",
        b"Wo",
        8,
    )
    channel.rename_to(str(tmp_path / "g"))
    assert (channel.path, os.listdir(tmp_path)) == (str(tmp_path / "g"), ["g"])
    channel.close()
    channel.close()
    with pytest.raises(OSError):
        channel.read_at(1, 0)


def test_missing_file_is_not_made_without_create(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        OsFileSystem().open(str(tmp_path / "f"))


def test_dropped_channel_closes_its_descriptor(tmp_path: Path) -> None:
    channel = OsFileSystem().open(str(tmp_path / "f"), create=True)
    fd = channel.fileno()

    del channel

    with pytest.raises(OSError):
        os.fstat(fd)


def test_file_system_odds_and_ends(tmp_path: Path) -> None:
    fs = OsFileSystem()
    fs.makedirs(str(tmp_path / "a" / "b"))
    fs.makedirs(str(tmp_path / "a" / "b"))

    assert fs.is_dir(str(tmp_path / "a"))
    assert fs.disk_usage(str(tmp_path)).total_bytes >= fs.disk_usage(str(tmp_path)).usable_bytes > 0
    assert not fs.unlink_if_exists(str(tmp_path / "none"))
    fs.remove_tree(str(tmp_path / "a"))
    fs.remove_tree(str(tmp_path / "a"))
    assert not fs.exists(str(tmp_path / "a"))


def test_faulty_disk_forgets_what_was_not_synced(tmp_path: Path) -> None:
    fs = CrashingFileSystem()
    kept, lost = (fs.open(str(tmp_path / name), create=True) for name in ("kept", "lost"))
    write_fully(kept, b"synced", 0)
    kept.flush()
    write_fully(kept, b" and more", 6)
    write_fully(lost, b"never synced", 0)

    fs.crash()

    assert (tmp_path / "kept").read_bytes() == b"synced"
    assert not (tmp_path / "lost").exists()
    with pytest.raises(OSError, match="crash"):
        kept.flush()


def test_faulty_disk_fails_on_cue(tmp_path: Path) -> None:
    fs = CrashingFileSystem()
    channel = fs.open(str(tmp_path / "f"), create=True)
    fs.fail("write", nth=2, error=errno.ENOSPC, write_before_failing=3)
    write_fully(channel, b"first", 0)

    with pytest.raises(OSError) as raised:
        write_fully(channel, b"second", 5)

    assert raised.value.errno == errno.ENOSPC
    assert (tmp_path / "f").read_bytes() == b"firstsec"


def test_first_failure_of_a_directory_is_queued_once() -> None:
    channel = LogDirFailureChannel()

    channel.maybe_add_offline_log_dir("/a", "it broke")
    channel.maybe_add_offline_log_dir("/a", "it broke again")
    channel.maybe_add_offline_log_dir("/b", "it broke too")

    assert [channel.take_next_offline_log_dir(0) for _ in range(3)] == ["/a", "/b", None]
    assert channel.has_offline_log_dir("/a")
    assert not channel.has_offline_log_dir("/c")


def test_io_error_takes_the_directory_offline(storage: StorageHarness) -> None:
    with (
        pytest.raises(KafkaStorageError, match="counting sheep"),
        storage.environment.io_errors("/dir", "counting sheep"),
    ):
        raise OSError(errno.EIO, "broken")

    assert storage.failures.has_offline_log_dir("/dir")
    with pytest.raises(KafkaStorageError, match="offline"):
        storage.environment.ensure_online("/dir")


def test_topic_meters_count_per_topic_and_together() -> None:
    metrics = MetricsRegistry()
    stats = BrokerTopicStats(metrics)

    stats.update_bytes_in("a", num_bytes=10, num_messages=2)
    stats.update_bytes_in("b", num_bytes=5, num_messages=1)
    stats.update_bytes_out("a", 7)
    stats.mark_produce_request("a")
    stats.mark_failed_produce("a")
    stats.mark_fetch_request("b")
    stats.mark_failed_fetch("b")
    stats.mark_fetch_conversion("b")
    stats.mark_produce_conversion("b", 3)

    counts = {(s.spec.name, s.labels): s.value for s in metrics.samples() if s.value}
    assert counts["BytesInPerSec", ()] == 15
    assert counts["MessagesInPerSec", (("topic", "a"),)] == 2
    assert counts["BytesOutPerSec", ()] == 7
    assert counts["ProduceMessageConversionsPerSec", (("topic", "b"),)] == 3
    stats.remove_metrics("a")
    assert not [s for s in metrics.samples() if s.labels == (("topic", "a"),)]
