"""The transaction of one attempt of one task, and how a set of them is written down.

    v1;<partitions>;<attempts>;<producer ids>;<epochs>

Each column has a number for each transaction, as the difference from the one before it (from 0 for
the first); equal differences in a row are written once: 7, 8, 9, 10 is +7+1x3. Tasks that began
with the query have ids and epochs that go in step, so a thousand of them take a few dozen bytes.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from typing import NamedTuple

from kafkapy.clients.producer import PreparedTransaction
from kafkapy.pipeline.pipeline_errors import CorruptDataError

_VERSION = "v1"
_COLUMN = re.compile(r"(?:[+-]\d+(?:x\d+)?)+")
_RUN = re.compile(r"([+-]\d+)(?:x(\d+))?")


class TaskTransaction(NamedTuple):
    """Who holds the transaction: ordered by task.

    Each attempt of a task has a transactional id of its own. A second one that runs beside the
    first (speculation, or an executor that was given up too soon) can then not abort what the first
    has prepared and Spark has accepted; it is aborted when the batch is committed.
    """

    partition: int
    attempt: int
    producer_id: int
    epoch: int

    def prepared(self, job: str) -> PreparedTransaction:
        """`job` is what the ids of all tasks begin with."""
        name = transactional_id(job, partition=self.partition, attempt=self.attempt)
        return PreparedTransaction(name, self.producer_id, self.epoch)


def transactional_id(job: str, *, partition: int, attempt: int) -> str:
    return f"{job}-{partition}" if attempt == 0 else f"{job}-{partition}-{attempt}"


def encode_transactions(transactions: Iterable[TaskTransaction]) -> str:
    columns = zip(*sorted(transactions), strict=True)
    return ";".join([_VERSION, *map(_encode_column, columns)])


def decode_transactions(text: str) -> tuple[TaskTransaction, ...]:
    """CorruptDataError for what encode_transactions did not write."""
    version, *columns = text.split(";")
    if version == _VERSION and all(map(_COLUMN.fullmatch, columns)):
        decoded = [_decode_column(column) for column in columns]
        if len(decoded) == len(TaskTransaction._fields) and len(set(map(len, decoded))) == 1:
            return tuple(itertools.starmap(TaskTransaction, zip(*decoded, strict=True)))
    raise CorruptDataError(f"not a list of transactions: {text!r}")


def _encode_column(numbers: Iterable[int]) -> str:
    steps = (after - before for before, after in itertools.pairwise(itertools.chain((0,), numbers)))
    runs = ((step, len(list(run))) for step, run in itertools.groupby(steps))
    return "".join(f"{step:+d}" if count == 1 else f"{step:+d}x{count}" for step, count in runs)


def _decode_column(text: str) -> list[int]:
    steps = (int(step) for step, count in _RUN.findall(text) for _ in range(int(count or 1)))
    return list(itertools.accumulate(steps))
