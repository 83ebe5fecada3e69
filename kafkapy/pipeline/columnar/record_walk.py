"""Where the records of a stream begin.

Each record says how long it is, so that finding one needs the one before: a loop over records, and
the slowest part of decoding them. Here most starts are guessed at once and then proved.

A record without headers ends with a zero, their number; the next one's length follows, and behind
that another zero, the attributes. So a start may be wherever two zeros enclose one varint. Of those
guesses, each that lies where the one before says the next record begins is right if that one is,
and the first is known to be. Where the chain breaks (records with headers, payloads with such
patterns inside) records are stepped over one at a time until it goes on.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kafkapy.pipeline.columnar.varint_columns import ByteColumn, IntColumn, read_varints
from kafkapy.utils.varint import read_unsigned_varint

_LONGEST_GUESSED_VARINT: Final = 4
_SHORT_CHAIN: Final = 32  # costs as much as stepping over its records
_MIN_STEPS: Final = 4
_MAX_STEPS: Final = 4096


def record_starts(content: bytes, *, begin: int, end: int, count: int) -> IntColumn:
    """The starts of `count` records and, behind them, the end of the last one.

    There is a zero before `begin` and another at `end`. Raises ValueError when there are fewer
    records between the two.
    """
    data: ByteColumn = np.frombuffer(content, np.uint8)
    guesses, nexts = _guesses(data)
    breaks = np.flatnonzero(nexts[:-1] != guesses[1:])
    starts = np.empty(count + 1, np.int64)
    done = 0
    position = begin
    steps = _MIN_STEPS
    try:
        while done < count:
            first = int(guesses.searchsorted(position))
            if first < guesses.size and guesses[first] == position:
                last_break = int(breaks.searchsorted(first))
                last = int(breaks[last_break]) if last_break < breaks.size else guesses.size - 1
                taken = min(last - first + 1, count - done)
                starts[done : done + taken] = guesses[first : first + taken]
                position = int(nexts[first + taken - 1])
                done += taken
                if taken > _SHORT_CHAIN:
                    steps = _MIN_STEPS
            taken = min(steps, count - done)
            found = step_over(content, position, taken)
            starts[done : done + taken] = found[:-1]
            position = found[-1]
            done += taken
            steps = min(2 * steps, _MAX_STEPS)
    except IndexError as error:
        raise ValueError(f"there are fewer than {count} records") from error
    if position > end:
        raise ValueError(f"the last record goes {position - end} bytes past the end")
    starts[count] = position
    if (data[starts[:-1]] & 1).any():
        raise ValueError("a record has a negative size")
    return starts


def step_over(content: bytes, position: int, count: int) -> list[int]:
    """The position given and those after each of the next records."""
    positions = [position]
    append = positions.append
    for _ in range(count):
        byte = content[position]
        if byte < 0x80:
            position += (byte >> 1) + 1
        elif (second := content[position + 1]) < 0x80:
            position += (second << 6 | byte >> 1 & 0x3F) + 2
        else:
            size, position = read_unsigned_varint(content, position)
            position += size >> 1
        append(position)
    return positions


def _guesses(data: ByteColumn) -> tuple[IntColumn, IntColumn]:
    """Where records may begin, and where the next record begins if one does."""
    zeros = np.flatnonzero(data == 0)
    gaps = np.diff(zeros)
    enclosing = np.flatnonzero((gaps > 1) & (gaps <= _LONGEST_GUESSED_VARINT + 1))
    guesses = zeros[enclosing] + 1
    sizes, after = read_varints(data, guesses)
    fitting = (after == zeros[enclosing + 1]) & (sizes >= 0)
    if not fitting.all():
        guesses, sizes, after = guesses[fitting], sizes[fitting], after[fitting]
    return guesses, after + sizes
