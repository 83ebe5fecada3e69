"""How much of their time threads wait."""

from collections.abc import Callable

from kafkapy.common.metrics.rate import Rate
from kafkapy.utils.time import Time


class IdleRatio:
    """The share of about the last minute that was spent waiting. Thread-safe.

    The threads only add up what they have waited; the ratio is made when somebody asks.
    """

    def __init__(self, time: Time, total_waited_ns: Callable[[], float]) -> None:
        self._rate = Rate(time, total_waited_ns)

    def value(self) -> float:
        """Between 0.0 (always busy) and 1.0 (always waiting)."""
        rate = self._rate.per_nanosecond()
        return 1.0 if rate is None else min(1.0, rate)
