import re
from xml.etree import ElementTree

import pytest

from kafkapy.pipeline.jobs.report.time_chart import RESTART_CLASS, ChartFrame, TimeChart

# 2026-11-16T09:00:00Z, and the hundred seconds after it
START_MS = 1_794_819_600_000
LEFT, RIGHT, TOP, BOTTOM = 64, 944, 44, 210


def chart() -> TimeChart:
    return TimeChart(ChartFrame("Rows", START_MS, START_MS + 100_000, [0, 50, 100], str))


def drawn(made: TimeChart) -> ElementTree.Element:
    return ElementTree.fromstring(made.svg())


def found(made: TimeChart, tag: str, css_class: str) -> list[ElementTree.Element]:
    return [e for e in drawn(made).iter(tag) if css_class in e.get("class", "").split()]


def points(path: ElementTree.Element) -> list[tuple[float, float]]:
    numbers = [float(n) for n in re.findall(r"-?[\d.]+", path.get("d", ""))]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def test_the_plot_reaches_from_axis_to_axis() -> None:
    made = chart()

    assert (made.x(START_MS), made.x(START_MS + 100_000)) == (LEFT, RIGHT)
    assert (made.y(0), made.y(100)) == (BOTTOM, TOP)


def test_axes_have_their_labels_at_their_values() -> None:
    texts = {
        e.text: (float(e.get("x", "")), float(e.get("y", "")))
        for e in found(chart(), "text", "label")
    }

    assert texts["0"] == (LEFT - 8, BOTTOM + 4)
    assert texts["100"] == (LEFT - 8, TOP + 4)
    assert texts["09:00:30"] == (LEFT + 0.3 * (RIGHT - LEFT), BOTTOM + 18)


def test_a_line_has_each_value_in_the_middle_of_its_time() -> None:
    made = chart()
    made.add_line([0, 100, 50, 0], "s1")
    [line] = found(made, "path", "line")

    assert points(line) == [(174, BOTTOM), (394, TOP), (614, 127), (834, BOTTOM)]


def test_a_line_has_a_gap_where_there_is_no_value() -> None:
    made = chart()
    made.add_line([None, 10, 20, None, None, 30, 40, None], "s1")

    assert [len(points(line)) for line in found(made, "path", "line")] == [2, 2]


def test_a_single_point_can_be_seen() -> None:
    made = chart()
    made.add_line([None, 100, None], "s1")
    [dot] = found(made, "circle", "s1")

    assert (float(dot.get("cx", "")), float(dot.get("cy", ""))) == (504, TOP)
    assert found(made, "path", "line") == []


def test_an_area_stands_on_the_axis() -> None:
    made = chart()
    made.add_line([50, 100], "s1", has_area=True)
    [area] = found(made, "path", "area")

    assert points(area) == [(284, BOTTOM), (284, 127), (724, TOP), (724, BOTTOM)]


@pytest.mark.parametrize("values", [[], [None, None]])
def test_a_chart_without_data_says_so(values: list[float | None]) -> None:
    made = chart()
    made.add_line(values, "s1")

    assert "nothing to show" in made.svg()


def test_the_parts_of_a_bar_lie_upon_each_other() -> None:
    made = chart()
    made.add_stack(START_MS, START_MS + 10_000, [(25, "s1"), (0, "s2"), (50, "s3")])
    bars = [
        tuple(float(bar.get(name, "")) for name in ("x", "y", "width", "height"))
        for bar in found(made, "rect", "bar")
    ]

    assert bars == [(LEFT, 168.5, 87.5, 41.5), (LEFT, 85.5, 87.5, 83)]


def test_the_shortest_bar_can_be_seen() -> None:
    made = chart()
    made.add_stack(START_MS, START_MS + 1, [(25, "s1")])
    [bar] = found(made, "rect", "bar")

    assert bar.get("width") == "1.5"


def test_a_restart_is_a_band_and_a_line_at_its_end() -> None:
    made = chart()
    made.add_band(START_MS + 10_000, START_MS + 20_000, "failed: no <broker> & no hope")
    [band], [line] = found(made, "rect", "band"), found(made, "line", "restart")

    assert (band.get("x"), band.get("width")) == ("152", "88")
    assert line.get("x1") == line.get("x2") == "240"
    assert "failed: no &lt;broker&gt; &amp; no hope" in made.svg()


def test_notes_are_shown_where_the_mouse_is() -> None:
    made = chart()
    made.add_hover(START_MS, START_MS + 50_000, "in 5 rows/s")
    [hover] = found(made, "rect", "hover")

    assert (hover.get("x"), hover.get("width")) == (str(LEFT), "440")
    assert hover[0].text == "in 5 rows/s"


def test_the_legend_names_the_series_in_their_order_within_the_chart() -> None:
    made = chart()
    made.add_legend("in", "s1")
    made.add_legend("a-topic-with-a-name-that-does-not-end-12", "s2")
    made.add_legend("restart", RESTART_CLASS)
    labels = sorted(found(made, "text", "legend"), key=lambda e: float(e.get("x", "")))

    assert [e.text for e in labels] == ["in", "a-topic-with-a-name-that-do…", "restart"]
    assert all(LEFT < float(e.get("x", "")) < RIGHT for e in labels)
    assert "a-topic-with-a-name-that-does-not-end-12" in made.svg()
