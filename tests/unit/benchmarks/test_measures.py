import pytest

from tests.benchmarks.measures import Bar, Figure, Measure, Subject


def _figure(
    *bars: Bar,
    ours: list[float],
    limit: list[float] | None = None,
    other: list[float] | None = None,
) -> Figure:
    rounds = {Subject.OURS: ours, Subject.LIMIT: limit or [], Subject.THEIRS: other or []}
    return Figure(Measure("name", "what", "unit", "limit", bars), rounds)


def test_a_value_is_the_median_of_its_rounds() -> None:
    figure = _figure(ours=[1.0, 9.0, 2.0])

    assert figure.value(Subject.OURS) == 2.0


def test_a_ratio_compares_each_round_with_itself() -> None:
    figure = _figure(ours=[10.0, 2.0, 40.0], limit=[20.0, 4.0, 40.0])

    assert figure.ratio(Subject.LIMIT) == 0.5


def test_what_was_not_measured_has_neither_value_nor_ratio() -> None:
    figure = _figure(ours=[1.0])

    assert figure.value(Subject.THEIRS) is None
    assert figure.ratio(Subject.THEIRS) is None


@pytest.mark.parametrize(
    ("bar", "verdict"),
    [
        (Bar(10), "ok"),
        (Bar(11), "below"),
        (Bar(10, is_maximum=True), "ok"),
        (Bar(9, is_maximum=True), "above"),
        (Bar(0.5, is_ratio=True), "ok"),
        (Bar(0.6, is_ratio=True), "below"),
    ],
)
def test_a_bar_is_met_by_its_very_value(bar: Bar, verdict: str) -> None:
    figure = _figure(bar, ours=[10.0], limit=[20.0])

    assert figure.verdict(bar) == verdict


def test_a_ratio_without_a_limit_has_no_verdict() -> None:
    bar = Bar(0.5, is_ratio=True)

    assert _figure(bar, ours=[10.0]).verdict(bar) == "not measured"


def test_a_variant_is_judged_by_its_own_values() -> None:
    bar = Bar(0.5, is_ratio=True)
    rounds = {Subject.OURS: [1.0], Subject.ANY_CORE: [6.0], Subject.LIMIT: [10.0]}
    figure = Figure(Measure("m", "what", "unit", "limit", (bar,)), rounds)

    assert figure.verdict(bar) == "below"
    assert figure.verdict(bar, Subject.ANY_CORE) == "ok"
    assert figure.ratio(Subject.LIMIT, Subject.ANY_CORE) == 0.6


def test_a_bar_says_what_it_is_a_ratio_of() -> None:
    assert str(Bar(0.5, is_ratio=True)) == ">= 0.5 of the limit"
    assert str(Bar(2, is_ratio=True, of="kafka-python")) == ">= 2 of kafka-python"
    assert str(Bar(1000, is_maximum=True)) == "<= 1,000"


def test_a_bar_may_be_on_the_ratio_to_the_other() -> None:
    bar = Bar(10, is_ratio=True, of="the loop", subject=Subject.THEIRS)
    figure = _figure(bar, ours=[30.0], limit=[60.0], other=[2.0])

    assert figure.verdict(bar) == "ok"
    assert str(bar) == ">= 10 of the loop"
