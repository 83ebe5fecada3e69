import json
import os
from pathlib import Path

import pytest

from kafkapy.pipeline.jobs.progress.progress_log import (
    ProgressLog,
    QueryStarted,
    QueryTerminated,
    read_progress_log,
)
from kafkapy.pipeline.jobs.progress.query_progress import QueryProgress
from kafkapy.pipeline.pipeline_errors import PipelineError
from tests.helpers.mock_time import MockTime
from tests.helpers.query_progress import ARCHIVE, progress, spark_json


def written(path: Path, time: MockTime, *batches: QueryProgress) -> None:
    log = ProgressLog(path, time)
    for batch in batches:
        log.on_progress(batch)
    log.close()


def test_everything_that_is_logged_is_read_again(tmp_path: Path, time: MockTime) -> None:
    path = tmp_path / "logs" / "progress.jsonl"
    log = ProgressLog(path, time)
    began_ms = time.milliseconds()

    log.on_started(ARCHIVE)
    log.on_progress(progress(0))
    log.on_idle(ARCHIVE)
    time.sleep(500)
    log.on_terminated(ARCHIVE, "the disk is full")
    log.close()
    log.close()

    assert list(read_progress_log(path)) == [
        QueryStarted(ARCHIVE, began_ms),
        progress(0),
        QueryTerminated(ARCHIVE, began_ms + 500, "the disk is full"),
    ]


@pytest.mark.parametrize("kept", [1, 20, -1])
def test_a_torn_last_line_is_passed_over_and_cut_off_by_the_next_writer(
    tmp_path: Path, time: MockTime, kept: int
) -> None:
    path = tmp_path / "progress.jsonl"
    written(path, time, progress(0), progress(1))
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(whole[0] + whole[1][:kept])

    assert list(read_progress_log(path)) == [progress(0)]

    written(path, time, progress(2))
    assert list(read_progress_log(path)) == [progress(0), progress(2)]


def test_a_log_of_nothing_but_a_torn_line_starts_anew(tmp_path: Path, time: MockTime) -> None:
    path = tmp_path / "progress.jsonl"
    path.write_bytes(b"x" * 200_000)

    written(path, time, progress(2))

    assert list(read_progress_log(path)) == [progress(2)]


def test_a_log_beyond_its_size_is_rotated_and_read_with_the_older_ones(
    tmp_path: Path, time: MockTime
) -> None:
    path = tmp_path / "progress.jsonl"
    line_bytes = len(json.dumps({"event": "progress"} | progress(0).fields()))
    log = ProgressLog(path, time, max_bytes=2 * line_bytes, backups=2)

    for batch_id in range(9):
        log.on_progress(progress(batch_id))
    log.close()

    assert sorted(os.listdir(tmp_path)) == [
        "progress.jsonl",
        "progress.jsonl.1",
        "progress.jsonl.2",
    ]
    assert path.stat().st_size <= 2 * line_bytes
    # Nine batches of two a file: the two oldest files are gone.
    read = [event.batch_id for event in read_progress_log(path) if isinstance(event, QueryProgress)]
    assert read == [4, 5, 6, 7, 8]


def test_no_room_for_a_line_leaves_the_log_whole(
    tmp_path: Path, time: MockTime, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "progress.jsonl"
    log = ProgressLog(path, time)
    log.on_progress(progress(0))

    with monkeypatch.context() as full:
        write = os.write
        full.setattr(os, "write", lambda fd, data: write(fd, data[:10]))
        with pytest.raises(OSError, match=r"progress\.jsonl: no room"):
            log.on_progress(progress(1))
    log.on_progress(progress(2))
    log.close()

    assert list(read_progress_log(path)) == [progress(0), progress(2)]


def test_lines_of_sparks_own_progress_are_read_too(tmp_path: Path) -> None:
    path = tmp_path / "progress.jsonl"
    path.write_text(f"{spark_json()}\n\n")

    assert list(read_progress_log(path)) == [QueryProgress.of_spark(spark_json())]


@pytest.mark.parametrize(
    "line", ["what", "{}", '{"event": "sneezed", "query": "", "query_id": "", "run_id": ""}', "[]"]
)
def test_a_line_of_something_else_is_named(tmp_path: Path, time: MockTime, line: str) -> None:
    path = tmp_path / "progress.jsonl"
    written(path, time, progress(0))
    with path.open("a") as log:
        log.write(f"{line}\n")

    with pytest.raises(PipelineError, match=r"progress\.jsonl, line 2: not an event"):
        list(read_progress_log(path))


def test_a_log_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="nowhere: there is no such progress log"):
        list(read_progress_log(tmp_path / "nowhere"))


def test_a_log_that_cannot_be_written_is_named(tmp_path: Path, time: MockTime) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(PipelineError, match=r"file/progress\.jsonl: the progress log cannot be"):
        ProgressLog(tmp_path / "file" / "progress.jsonl", time)
