"""Into how many tasks what is to be read is divided."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from kafkapy.pipeline.source.offset_range import OffsetRange


@dataclass(frozen=True, slots=True)
class OffsetRangeCalculator:
    """Splits ranges until none is longer, and there are not fewer, than the options say.

    Ports: org.apache.spark.sql.kafka010.KafkaOffsetRangeCalculator
    """

    min_partitions: int | None = None
    max_records_per_partition: int | None = None

    def ranges(self, ranges: Iterable[OffsetRange]) -> list[OffsetRange]:
        """The same offsets, in order; empty ranges are left out."""
        found = [offset_range for offset_range in ranges if offset_range.size > 0]
        if (most := self.max_records_per_partition) is not None:
            found = [
                part
                for offset_range in found
                for part in _divide(offset_range, math.ceil(offset_range.size / most))
            ]
        if self.min_partitions is not None and len(found) < self.min_partitions:
            found = self._divide_large(found, self.min_partitions)
        return found

    def _divide_large(self, ranges: list[OffsetRange], min_partitions: int) -> list[OffsetRange]:
        total = sum(offset_range.size for offset_range in ranges)
        # Those that stay whole take a part each out of the sum: the others share the rest.
        small = {r for r in ranges if _part_count(r.size, total, min_partitions) == 1}
        large_total = total - sum(offset_range.size for offset_range in small)
        large_parts = max(min_partitions - len(small), 1)
        return [
            part
            for offset_range in ranges
            for part in _divide(
                offset_range,
                1
                if offset_range in small
                else _part_count(offset_range.size, large_total, large_parts),
            )
        ]


def _part_count(size: int, total: int, parts: int) -> int:
    return max(math.floor(size / total * parts + 0.5), 1)


def _divide(offset_range: OffsetRange, parts: int) -> list[OffsetRange]:
    """Parts of nearly the same size; fewer when there are not so many offsets."""
    divided = []
    parts = min(parts, offset_range.size)
    start = offset_range.from_offset
    for index in range(parts):
        end = start + (offset_range.until_offset - start) // (parts - index)
        divided.append(replace(offset_range, from_offset=start, until_offset=end))
        start = end
    return divided
