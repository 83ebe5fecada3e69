import io

import pytest

from kafkapy.utils.terminal_block import TerminalBlock, clipped

CLEAR = "\r\x1b[K"
UP = "\x1b[A"


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_what_is_no_terminal_gets_nothing() -> None:
    pipe = io.StringIO()
    block = TerminalBlock(pipe)

    block.draw(["one", "two"])
    block.clear()

    assert pipe.getvalue() == ""


def test_each_drawing_clears_every_line_of_the_one_before() -> None:
    terminal = _Terminal()
    block = TerminalBlock(terminal)

    block.draw(["one", "two", "three"])
    block.draw(["four"])
    block.clear()

    assert terminal.getvalue() == (
        f"{CLEAR}one\ntwo\nthree" + f"{CLEAR}{UP}{CLEAR}{UP}{CLEAR}four" + CLEAR
    )


def test_more_lines_than_the_terminal_has_are_left_out() -> None:
    terminal = _Terminal()
    block = TerminalBlock(terminal)

    block.draw([str(number) for number in range(100)])

    assert terminal.getvalue().count("\n") == block.size.lines - 1


@pytest.mark.parametrize(
    ("text", "columns", "expected"),
    [
        ("", 5, ""),
        ("abcde", 5, "abcde"),
        ("abcdef", 5, "abcde"),
        ("注文の数", 5, "注文"),
        ("注文の数", 8, "注文の数"),
    ],
)
def test_a_line_is_cut_where_the_terminal_ends(text: str, columns: int, expected: str) -> None:
    assert clipped(text, columns) == expected
