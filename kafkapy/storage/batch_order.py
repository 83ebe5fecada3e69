"""Whether the offsets of batches on disk can be true."""

from collections.abc import Iterator
from typing import TypeVar

from kafkapy.common.errors import InvalidRecordError
from kafkapy.common.record.record_batch import RecordBatch
from kafkapy.storage.abstract_index import INT_MAX

BatchT = TypeVar("BatchT", bound=RecordBatch)


def in_offset_order(
    batches: Iterator[BatchT],
    base_offset: int,
    *,
    next_base_offset: int | None,
    may_have_gaps: bool,
) -> Iterator[BatchT]:
    """The batches of a segment; raises InvalidRecordError at the first one with a wrong offset.

    Offsets increase and fit between the bases of this segment and the next. Compaction leaves gaps
    in them, so a gap alone proves nothing: but if the batch after it lies before the gap's end,
    then the gap was never there. Behind the last batch of the log nothing tells, and a gap is only
    believed where there can be one.
    """
    expected = base_offset
    limit = base_offset + INT_MAX if next_base_offset is None else next_base_offset - 1
    suspect: BatchT | None = None
    for batch in batches:
        if batch.last_offset > limit:
            raise InvalidRecordError(f"offset {batch.last_offset} is beyond the segment's {limit}")
        if suspect is not None:
            if batch.base_offset <= suspect.last_offset:
                raise InvalidRecordError(
                    f"offset {suspect.base_offset} comes between {expected - 1} and "
                    f"{batch.base_offset}"
                )
            yield suspect
            expected = suspect.last_offset + 1
            suspect = None
        if batch.base_offset < expected or batch.last_offset < batch.base_offset:
            raise InvalidRecordError(f"offset {batch.base_offset} comes after {expected - 1}")
        if batch.base_offset > expected:
            suspect = batch
        else:
            yield batch
            expected = batch.last_offset + 1
    if suspect is not None:
        if next_base_offset is None and not may_have_gaps:
            raise InvalidRecordError(
                f"the last batch begins at offset {suspect.base_offset}, not {expected}"
            )
        yield suspect
