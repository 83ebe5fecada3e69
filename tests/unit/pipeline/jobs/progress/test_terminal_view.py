import io
import os

import pytest

from kafkapy.pipeline.jobs.progress.query_progress import QueryRun
from kafkapy.pipeline.jobs.progress.terminal_view import TerminalView, batch_line
from kafkapy.utils.terminal_block import TerminalBlock
from tests.helpers.query_progress import ARCHIVE, partition, progress


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def screen(self) -> list[str]:
        """What is seen after the last drawing."""
        return self.getvalue().rpartition("\x1b[K")[2].splitlines()


def test_a_line_says_what_a_batch_did() -> None:
    batch = progress(4, rows_in=12345, rows_out=12000, dead_letters=3, late_rows=2)

    assert batch_line(batch) == (
        "2026-11-16T09:21:56Z archive batch 4: 12,345 rows in, 12,000 out, 1,000 rows/s, 1 s, "
        "lag 320, 3 dead letters, 2 too late"
    )


def test_a_line_leaves_out_what_is_not_known() -> None:
    batch = progress(4, rows_out=None, partitions=())

    assert batch_line(batch) == (
        "2026-11-16T09:21:56Z archive batch 4: 1,000 rows in, 1,000 rows/s, 1 s"
    )


@pytest.mark.parametrize(
    ("stream", "is_quiet"), [(io.StringIO(), False), (_Terminal(), True)], ids=["pipe", "quiet"]
)
def test_a_pipe_and_the_quiet_get_one_line_a_batch(stream: io.StringIO, is_quiet: bool) -> None:
    view = TerminalView(stream, is_quiet=is_quiet)

    view.on_started(ARCHIVE)
    view.on_progress(progress(0))
    view.on_idle(ARCHIVE)
    view.on_progress(progress(1))
    view.on_terminated(ARCHIVE, None)
    view.close()

    assert stream.getvalue().splitlines() == [batch_line(progress(0)), batch_line(progress(1))]


def test_a_failure_is_a_line_in_a_pipe() -> None:
    pipe = io.StringIO()

    TerminalView(pipe).on_terminated(ARCHIVE, "KafkaError: no broker")

    assert pipe.getvalue() == "archive failed: KafkaError: no broker\n"


def test_a_terminal_shows_sums_rates_and_the_lag_of_each_partition() -> None:
    terminal = _Terminal()
    view = TerminalView(terminal)

    view.on_started(ARCHIVE)
    view.on_progress(progress(0, dead_letters=2))
    view.on_progress(progress(1, late_rows=1))

    assert terminal.screen() == [
        "archive   running   batch 1 took 1 s   addBatch 800 ms",
        "  in 2,000 at 950/s   out 1,980   done at 1k/s   dead letters 2   too late 1",
        "  lag 320   orders-0 300   orders-1 20",
    ]


def test_every_query_has_its_lines_and_its_state() -> None:
    terminal = _Terminal()
    view = TerminalView(terminal)
    other = QueryRun("counts", "2", "2")

    view.on_started(ARCHIVE)
    view.on_started(other)
    view.on_progress(progress(0, phases_ms={}, rows_out=None, partitions=()))
    view.on_idle(ARCHIVE)
    view.on_terminated(other, "no more")

    assert terminal.screen() == [
        "archive   waiting for data   batch 0 took 1 s",
        "  in 1,000 at 950/s   done at 1k/s",
        "counts   failed",
    ]


def test_the_partitions_that_lag_most_are_shown_as_far_as_the_terminal_is_wide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(TerminalBlock, "size", os.terminal_size((50, 24)))
    terminal = _Terminal()
    view = TerminalView(terminal)

    view.on_progress(progress(partitions=tuple(partition(n, 100 + n) for n in range(12))))

    assert terminal.screen()[2] == "  lag 1,266   orders-11 111   +11 more"


def test_what_is_printed_after_the_end_begins_below_the_view() -> None:
    terminal = _Terminal()
    view = TerminalView(terminal)
    view.on_started(ARCHIVE)

    view.close()
    view.close()

    assert terminal.getvalue().endswith("archive   starting\n")
