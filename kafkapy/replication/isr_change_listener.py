"""Counting changes of ISRs."""

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Meter

ISR_EXPANDS = Meter(
    "kafka.server:type=ReplicaManager,name=IsrExpandsPerSec", "Followers that joined an ISR."
)
ISR_SHRINKS = Meter(
    "kafka.server:type=ReplicaManager,name=IsrShrinksPerSec", "Times followers left an ISR."
)
FAILED_ISR_UPDATES = Meter(
    "kafka.server:type=ReplicaManager,name=FailedIsrUpdatesPerSec", "ISR changes not accepted."
)


class IsrChangeListener:
    """Meters what became of proposed ISRs.

    Ports: kafka.cluster.AlterPartitionListener
    """

    def __init__(self, metrics: MetricsRegistry) -> None:
        self._expands = metrics.meter(ISR_EXPANDS)
        self._shrinks = metrics.meter(ISR_SHRINKS)
        self._failed = metrics.meter(FAILED_ISR_UPDATES)

    def mark_isr_expand(self) -> None:
        self._expands.mark()

    def mark_isr_shrink(self) -> None:
        self._shrinks.mark()

    def mark_failed(self) -> None:
        self._failed.mark()
