"""How well the records of a topic compress, learnt from the batches sent."""

from __future__ import annotations

_IMPROVING_STEP = 0.005
_DETERIORATE_STEP = 0.05


class CompressionRatioEstimator:
    """Compressed over uncompressed size by topic, slow to get better and quick to get worse.

    Thread-safe: what it holds is an estimate, and a lost update only delays the next.

    Ports: org.apache.kafka.common.record.CompressionRatioEstimator
    """

    def __init__(self) -> None:
        self._ratios: dict[str, float] = {}

    def estimation(self, topic: str) -> float:
        return self._ratios.get(topic, 1.0)

    def update(self, topic: str, observed_ratio: float) -> None:
        current = self._ratios.get(topic, 1.0)
        if observed_ratio > current:
            self._ratios[topic] = max(current + _DETERIORATE_STEP, observed_ratio)
        elif observed_ratio < current:
            self._ratios[topic] = max(current - _IMPROVING_STEP, observed_ratio)

    def reset(self, topic: str, ratio: float) -> None:
        self._ratios[topic] = ratio
