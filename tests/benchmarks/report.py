"""The table bin/bench prints: a line per figure, as soon as it is known."""

from tests.benchmarks.measures import Figure, Subject

_WHAT = 46
_VALUE = 20


def print_heading(*, with_other: bool) -> None:
    other = f"{'the other':>{_VALUE}}  {'ratio':>7}" if with_other else ""
    print(f"{'':{_WHAT}}{'kafkapy':>{_VALUE}}{'limit':>{_VALUE}}  {'ratio':>7}{other}  bar")


def print_figure(figure: Figure, *, with_other: bool) -> None:
    line = f"{figure.measure.what:{_WHAT}}{_value(figure, Subject.OURS)}"
    line += _beside(figure, Subject.LIMIT)
    if with_other:
        line += _beside(figure, Subject.THEIRS)
    bars = "; ".join(f"{bar}: {figure.verdict(bar)}" for bar in figure.measure.bars)
    print(f"{line}  {bars}".rstrip(), flush=True)


def _beside(figure: Figure, subject: Subject) -> str:
    ratio = figure.ratio(subject)
    return f"{_value(figure, subject)}  {'' if ratio is None else f'{ratio:.2f}':>7}"


def _value(figure: Figure, subject: Subject) -> str:
    value = figure.value(subject)
    if value is None:
        return " " * _VALUE
    digits = 2 if value < 10 else 0
    return f"{f'{value:,.{digits}f} {figure.measure.unit}':>{_VALUE}}"
