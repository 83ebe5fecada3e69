"""What compaction is doing to a partition."""

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class LogCleaningInProgress:
    """A thread works on it.

    Ports: kafka.log.LogCleaningInProgress
    """


@dataclass(frozen=True, slots=True)
class LogCleaningAborted:
    """A thread works on it and has been told to stop.

    Ports: kafka.log.LogCleaningAborted
    """


@dataclass(frozen=True, slots=True)
class LogCleaningPaused:
    """No thread may begin; so many have asked for that.

    Ports: kafka.log.LogCleaningPaused
    """

    count: int


LogCleaningState: TypeAlias = LogCleaningInProgress | LogCleaningAborted | LogCleaningPaused
