"""How much of what is there one micro-batch takes."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping

from kafkapy.common.types import TopicPartition
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

Offsets = Mapping[TopicPartition, int]


class ReadLimitCalculator:
    """Applies minOffsetsPerTrigger, maxTriggerDelay and maxOffsetsPerTrigger. For one thread.

    Spark takes no limit that has both a least and a most, so both are applied here.

    Ports: org.apache.spark.sql.kafka010.KafkaMicroBatchStream
    """

    def __init__(
        self,
        time: Time,
        *,
        max_offsets: int | None,
        min_offsets: int | None,
        max_trigger_delay_ms: int,
    ) -> None:
        # constant after construction
        self._time = time
        self._max_offsets = max_offsets
        self._min_offsets = min_offsets
        self._max_trigger_delay_ms = max_trigger_delay_ms
        # None before the first batch, which waits for nothing
        self._last_trigger_ms: int | None = None

    def is_too_little(self, start: Offsets, latest: Offsets) -> bool:
        """Whether to wait for more; no longer than the delay since the last batch."""
        if self._min_offsets is None:
            return False
        now_ms = self._time.hi_res_clock_ms()
        last_ms = self._last_trigger_ms
        if last_ms is not None and now_ms - last_ms < self._max_trigger_delay_ms:
            available = sum(offset - start.get(part, 0) for part, offset in latest.items())
            if available < self._min_offsets:
                logger.debug("Waiting: %d of %d offsets are there", available, self._min_offsets)
                return True
        self._last_trigger_ms = now_ms
        return False

    def rate_limit(self, start: Offsets, latest: Offsets) -> Offsets:
        """The end of a batch: what it may take is shared out by what the partitions have."""
        if self._max_offsets is None:
            return latest
        sizes = {
            partition: size
            for partition, end in latest.items()
            if partition in start and (size := end - start[partition]) > 0
        }
        total = sum(sizes.values())
        limited = dict(latest)
        for partition, size in sizes.items():
            share = self._max_offsets * size / total
            # A partition with little must not wait for ever behind those with much.
            taken = math.ceil(share) if share < 1 else math.floor(share)
            limited[partition] = min(latest[partition], start[partition] + taken)
        return limited
