"""How long to wait before trying again."""

from random import Random


class ExponentialBackoff:
    """A wait that grows with each attempt up to a bound, spread by jitter. Immutable but for the
    random source, which may be shared by threads.

    Ports: org.apache.kafka.common.utils.ExponentialBackoff
    """

    def __init__(
        self,
        initial_ms: int,
        multiplier: int,
        max_ms: int,
        *,
        jitter: float = 0.2,
        random: Random | None = None,
    ) -> None:
        self.initial_ms = min(initial_ms, max_ms)
        self.multiplier = multiplier
        self.max_ms = max_ms
        self.jitter = jitter
        self._random = random if random is not None else Random()

    def backoff_ms(self, attempts: int) -> int:
        """The wait after `attempts` failures in a row, counted from 0; never above `max_ms`."""
        term = self.initial_ms
        # Multiplying step by step and stopping at the bound: attempts may be in the thousands.
        for _ in range(attempts):
            if term >= self.max_ms or self.multiplier <= 1:
                break
            term *= self.multiplier
        term = min(term, self.max_ms)
        spread = self._random.uniform(1 - self.jitter, 1 + self.jitter) if self.jitter else 1.0
        return min(int(term * spread), self.max_ms)
