"""Which directories and files are partitions and segments."""

from pathlib import Path

import pytest

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.pipeline_errors import OptionError
from kafkapy.pipeline.segments.segment_files import PartitionLog, find_partition_logs, segments_of
from tests.helpers.mock_time import MockTime
from tests.unit.pipeline.segments.reading import filled_log, rows, segment_files
from tests.unit.storage.harness import StorageHarness


def make(log_dir: Path, *names: str) -> None:
    for name in names:
        path = log_dir / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def found(*paths: Path, lone_file: TopicPartition | None = None) -> list[PartitionLog]:
    return find_partition_logs(
        [str(path) for path in paths], wanted=lambda _: True, lone_file=lone_file
    )


def test_only_segments_of_partitions_in_use_are_found(tmp_path: Path) -> None:
    make(
        tmp_path,
        "a-b-0/00000000000000000000.log",
        "a-b-0/00000000000000000007.log",
        "a-b-0/00000000000000000007.index",
        "a-b-0/00000000000000000003.log.deleted",
        "a-b-0/00000000000000000005.log.swap",
        "a-b-0/00000000000000000005.log.cleaned",
        "a-b-0/00000000000000000007.snapshot",
        "a-b-0/partition.metadata",
        "c-1.0123456789abcdef0123456789abcdef-delete/00000000000000000000.log",
        "c-2.0123456789abcdef0123456789abcdef-future/00000000000000000000.log",
        "c-3.0123456789abcdef0123456789abcdef-stray/00000000000000000000.log",
        "empty-0/leader-epoch-checkpoint",
        "not a partition/00000000000000000000.log",
        "meta.properties",
    )

    (log,) = found(tmp_path)

    assert log.topic_partition == TopicPartition("a-b", 0)
    assert [segment.base_offset for segment in log.segments] == [0, 7]
    assert (log.log_start_offset, log.high_watermark) == (0, None)


def test_several_directories_are_read_as_one(tmp_path: Path) -> None:
    make(tmp_path, "one/a-0/00000000000000000000.log", "two/a-1/00000000000000000000.log")

    logs = found(tmp_path / "one", tmp_path / "two")

    assert [str(log.topic_partition) for log in logs] == ["a-0", "a-1"]


def test_a_partition_in_two_directories_is_refused(tmp_path: Path) -> None:
    make(tmp_path, "one/a-0/00000000000000000000.log", "two/a-0/00000000000000000000.log")

    with pytest.raises(OptionError, match=r"path: a-0 is both in .*one/a-0 and in .*two/a-0"):
        found(tmp_path / "one", tmp_path / "two")


def test_a_path_that_is_nothing_is_named(tmp_path: Path) -> None:
    make(tmp_path, "a-0/readme.txt", "file/00000000000000000000.log")

    with pytest.raises(OptionError, match=f"path: there is no directory or file {tmp_path}/gone"):
        found(tmp_path / "gone")
    with pytest.raises(OptionError, match=r"readme\.txt is not a segment"):
        found(tmp_path / "a-0" / "readme.txt")
    with pytest.raises(OptionError, match="the options topic and partitions can say"):
        found(tmp_path / "file" / "00000000000000000000.log")


def test_options_can_say_what_a_lone_file_belongs_to(
    storage: StorageHarness, time: MockTime, tmp_path: Path
) -> None:
    copy = tmp_path / "00000000000000000000.log"
    copy.write_bytes(segment_files(filled_log(storage, time))[0].read_bytes())

    first = rows(copy, topic="orders", partitions="3")[0]
    second_file = segment_files(filled_log(storage, time, name="other-1"))[1]

    assert (first["topic"], first["partition"], first["offset"]) == ("orders", 3, 0)
    assert rows(second_file, topic="orders", partitions="3") == []


def test_a_directory_that_was_deleted_since_has_no_segments(tmp_path: Path) -> None:
    assert segments_of(str(tmp_path / "topic-0")) == ()
