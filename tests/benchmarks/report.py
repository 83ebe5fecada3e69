"""The table bin/bench prints: a line per figure, as soon as it is known."""

from tests.benchmarks.measures import VARIANTS, Figure, Subject

_WHAT = 46
_VALUE = 20


def print_heading(
    *, with_other: bool, limit: str = Subject.LIMIT.value, other: str = Subject.THEIRS.value
) -> None:
    ours = f"{Subject.OURS.value:>{_VALUE}}"
    beside = f"{other:>{_VALUE}}  {'ratio':>7}" if with_other else ""
    print(f"{'':{_WHAT}}{ours}{limit:>{_VALUE}}  {'ratio':>7}{beside}  bar")


def print_figure(figure: Figure, *, with_other: bool) -> None:
    _print_line(figure, Subject.OURS, figure.measure.what, with_other=with_other)
    for variant in VARIANTS:
        if variant in figure.rounds:
            _print_line(figure, variant, f"  {variant.value}", with_other=with_other)


def _print_line(figure: Figure, ours: Subject, what: str, *, with_other: bool) -> None:
    line = f"{what:{_WHAT}}{_value(figure, ours)}{_beside(figure, Subject.LIMIT, ours)}"
    if with_other:
        line += _beside(figure, Subject.THEIRS, ours)
    bars = "; ".join(f"{bar}: {figure.verdict(bar, ours)}" for bar in figure.measure.bars)
    print(f"{line}  {bars}".rstrip(), flush=True)


def _beside(figure: Figure, subject: Subject, ours: Subject) -> str:
    ratio = figure.ratio(subject, ours)
    return f"{_value(figure, subject)}  {'' if ratio is None else f'{ratio:.2f}':>7}"


def _value(figure: Figure, subject: Subject) -> str:
    value = figure.value(subject)
    if value is None:
        return " " * _VALUE
    digits = 2 if value < 10 else 0
    return f"{f'{value:,.{digits}f} {figure.measure.unit}':>{_VALUE}}"
