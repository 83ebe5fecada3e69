"""What is measured, in which unit, and the bars set for it."""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum


class Subject(Enum):
    """Whose figure it is."""

    LIMIT = "limit"
    OURS = "kafkapy"
    THEIRS = "the other"
    ANY_CORE = "on any core"
    COMPILED = "compiled"


# Ours too, run otherwise.
VARIANTS = (Subject.ANY_CORE, Subject.COMPILED)


@dataclass(frozen=True, slots=True)
class Bar:
    """A bound on a value, or on the ratio of it to `subject`'s, which `of` names."""

    bound: float
    is_ratio: bool = False
    is_maximum: bool = False
    of: str = "the limit"
    subject: Subject = Subject.LIMIT

    def __str__(self) -> str:
        sign = "<=" if self.is_maximum else ">="
        return f"{sign} {self.bound:,g}{f' of {self.of}' if self.is_ratio else ''}"

    def holds(self, value: float) -> bool:
        return value <= self.bound if self.is_maximum else value >= self.bound


@dataclass(frozen=True, slots=True)
class Measure:
    """One line of the report; `limit` says what the limit is."""

    name: str
    what: str
    unit: str
    limit: str
    bars: tuple[Bar, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure:
    """A measure and its values, one per round and subject; rounds are alike in all subjects."""

    measure: Measure
    rounds: Mapping[Subject, Sequence[float]]

    def value(self, subject: Subject) -> float | None:
        values = self.rounds.get(subject)
        return statistics.median(values) if values else None

    def ratio(self, subject: Subject, ours: Subject = Subject.OURS) -> float | None:
        """Ours to the subject's, each round compared with itself: the machine drifts."""
        theirs = self.rounds.get(subject)
        if not theirs:
            return None
        pairs = zip(self.rounds[ours], theirs, strict=True)
        return statistics.median(a / b if b else float("nan") for a, b in pairs)

    def verdict(self, bar: Bar, ours: Subject = Subject.OURS) -> str:
        value = self.ratio(bar.subject, ours) if bar.is_ratio else self.value(ours)
        if value is None:
            return "not measured"
        return "ok" if bar.holds(value) else "below" if not bar.is_maximum else "above"

    def as_json(self) -> dict[str, object]:
        return {
            "name": self.measure.name,
            "what": self.measure.what,
            "unit": self.measure.unit,
            "limit_is": self.measure.limit,
            "value": self.value(Subject.OURS),
            "limit": self.value(Subject.LIMIT),
            "ratio_to_limit": self.ratio(Subject.LIMIT),
            "other": self.value(Subject.THEIRS),
            "ratio_to_other": self.ratio(Subject.THEIRS),
            "bars": [{"bar": str(bar), "verdict": self.verdict(bar)} for bar in self.measure.bars],
            "rounds": {subject.name.lower(): list(v) for subject, v in self.rounds.items()},
        }
