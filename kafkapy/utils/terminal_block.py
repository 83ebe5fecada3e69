"""Lines at the foot of a terminal that are written over, for people who wait."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Sequence
from typing import TextIO

_CLEAR_LINE = "\r\x1b[K"
_LINE_UP = "\x1b[A"
_UNKNOWN_SIZE = os.terminal_size((80, 24))


class TerminalBlock:
    """A few lines that each drawing replaces. For one thread.

    Nothing is written to what is no terminal. Lines are cut to the terminal's width: one that went
    on in the next row would not be cleared.
    """

    def __init__(self, stream: TextIO) -> None:
        # constant after construction
        self._stream = stream
        self.is_shown = stream.isatty()
        self._drawn = 0

    @property
    def size(self) -> os.terminal_size:
        """Columns and lines at this moment."""
        try:
            size = os.get_terminal_size(self._stream.fileno())
        except (OSError, ValueError):
            return _UNKNOWN_SIZE
        return size if size.columns and size.lines else _UNKNOWN_SIZE

    def draw(self, lines: Sequence[str]) -> None:
        """The cursor stays at the end of the last line."""
        if not self.is_shown:
            return
        columns, rows = self.size
        fitting = [clipped(line, columns) for line in lines[:rows]]
        self._write(self._cleared() + "\n".join(fitting))
        self._drawn = len(fitting)

    def clear(self) -> None:
        if self.is_shown:
            self._write(self._cleared())
            self._drawn = 0

    def _cleared(self) -> str:
        """Takes the cursor to the first of the drawn lines, with all of them empty."""
        return (_CLEAR_LINE + _LINE_UP) * (self._drawn - 1) + _CLEAR_LINE

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def clipped(text: str, columns: int) -> str:
    """As much of `text` as fits; wide characters take two columns."""
    if len(text) * 2 <= columns:
        return text
    used = 0
    for index, character in enumerate(text):
        used += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if used > columns:
            return text[:index]
    return text
