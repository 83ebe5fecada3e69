"""Where the records of a records section begin.

Each record says how long it is, so finding the next one needs the one before: the only part of
decoding that is a loop over records. Where records of one length follow each other, which is common
in machine-written topics, the loop is left for one comparison: record n of such a run begins at
start + n * length if, and only if, all before it begin with the same length bytes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from kafkapy.pipeline.columnar.varint_columns import ByteColumn, IntColumn
from kafkapy.utils.varint import read_varint

# A comparison costs about as much as stepping over this many records.
_RUN_BEFORE_COMPARING: Final = 24
_FIRST_WINDOW: Final = 64


def record_starts(content: bytes, end: int, count: int) -> IntColumn:
    """The starts of `count` records and, behind them, the end of the last one.

    Raises ValueError when the content, which ends at `end`, holds fewer records.
    """
    data: ByteColumn = np.frombuffer(content, np.uint8, end)
    starts = np.empty(count + 1, np.int64)
    found: list[int] = []
    done = 0  # of `starts`
    position = 0
    last_size = -1
    repeated = 0
    missing = count
    try:
        while missing > 0:
            found.append(position)
            missing -= 1
            byte = content[position]
            if byte < 0x80:
                size = (byte >> 1) + 1
            elif (second := content[position + 1]) < 0x80:
                size = ((byte & 0x7F | second << 7) >> 1) + 2
            else:
                length, after = read_varint(content, position)
                size = length + after - position
            if byte & 1:
                raise ValueError(f"the record at byte {position} has a negative size")
            position += size
            if size != last_size:
                last_size = size
                repeated = 0
                continue
            repeated += 1
            if repeated < _RUN_BEFORE_COMPARING or not missing:
                continue
            repeated = 0
            run = _run_length(data, position, size, missing)
            starts[done : done + len(found)] = found
            done += len(found)
            found.clear()
            starts[done : done + run] = np.arange(position, position + run * size, size)
            done += run
            missing -= run
            position += run * size
    except IndexError as error:
        raise ValueError(f"{missing + 1} of {count} records are missing") from error
    if position > end:
        raise ValueError(f"the last record goes {position - end} bytes past the end")
    starts[done : done + len(found)] = found
    starts[count] = position
    return starts


def _run_length(data: ByteColumn, position: int, size: int, most: int) -> int:
    """How many records from a position on, at most, begin as the one before it does."""
    before = data[position - size : position]
    width = 1
    while before[width - 1] > 0x7F:
        width += 1
    fitting = min(most, (data.size - position) // size)
    run = 0
    window = _FIRST_WINDOW
    # Growing windows: a run that ends soon must not cost a look at everything behind it.
    while run < fitting:
        window = min(window, fitting - run)
        start = position + run * size
        rows = data[start : start + window * size].reshape(window, size)
        different = rows[:, 0] != before[0]
        for byte in range(1, width):
            different |= rows[:, byte] != before[byte]
        first = int(different.argmax())
        if different[first]:
            return run + first
        run += window
        window *= 4
    return run
