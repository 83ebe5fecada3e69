import io

from kafkapy.tools.progress import Progress
from tests.helpers.mock_time import MockTime


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_pipe_gets_nothing_of_it(time: MockTime) -> None:
    pipe = io.StringIO()

    with Progress("records", 10, stream=pipe, time=time) as progress:
        progress.update(5)

    assert pipe.getvalue() == ""


def test_a_terminal_gets_a_line_a_few_times_a_second_that_is_gone_at_the_end(
    time: MockTime,
) -> None:
    terminal = _Terminal()

    with Progress("records", 10, stream=terminal, time=time) as progress:
        progress.update(5)
        progress.update(6)
        time.sleep(200)
        progress.update(7)

    assert terminal.getvalue().split("\r\x1b[K") == [
        "",
        "records: 5 of 10 (50%)",
        "records: 7 of 10 (70%)",
        "",
    ]
