"""A chart of something over time, as SVG."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kafkapy.pipeline.jobs.report.scale import LinearScale, time_labels, time_ticks
from kafkapy.pipeline.jobs.report.svg_elements import element, number, text, title

_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 16, 44, 30
_LETTER_WIDTH = 7.0  # of the legend's letters, about
_LEGEND_GAP = 30
_LABEL_LETTERS = 28
_LEAST_BAR = 1.5

RESTART_CLASS = "restart"


@dataclass(frozen=True, slots=True)
class ChartFrame:
    """What a chart has before anything is drawn in it. `y_ticks` begin with 0 and end on top."""

    title: str
    start_ms: int
    end_ms: int
    y_ticks: Sequence[float]
    y_label: Callable[[float], str]
    width: int = 960
    height: int = 240


class TimeChart:
    """Marks are drawn in the order in which they are added. Colours are the classes of `theme`."""

    def __init__(self, frame: ChartFrame) -> None:
        # constant after construction
        self._frame = frame
        self.x = LinearScale(frame.start_ms, frame.end_ms, _LEFT, frame.width - _RIGHT)
        self.y = LinearScale(0, frame.y_ticks[-1], frame.height - _BOTTOM, _TOP)
        self._marks: list[str] = []
        self._legend: list[tuple[str, str]] = []

    def add_legend(self, label: str, css_class: str) -> None:
        self._legend.append((label, css_class))

    def add_line(
        self, values: Sequence[float | None], css_class: str, *, has_area: bool = False
    ) -> None:
        """One value for each equal part of the time, each in its middle. None is a gap."""
        step = (self._frame.end_ms - self._frame.start_ms) / max(1, len(values))
        points = [
            None
            if value is None
            else (self.x(self._frame.start_ms + (index + 0.5) * step), self.y(value))
            for index, value in enumerate(values)
        ]
        for stretch in _stretches(points):
            if len(stretch) == 1:
                x, y = stretch[0]
                self._marks.append(element("circle", cx=x, cy=y, r=2.5, class_=f"dot {css_class}"))
                continue
            path = "L".join(f"{number(x)} {number(y)}" for x, y in stretch)
            if has_area:
                base = number(self.y(0))
                first, last = number(stretch[0][0]), number(stretch[-1][0])
                area = f"M{first} {base}L{path}L{last} {base}Z"
                self._marks.append(element("path", d=area, class_=f"area {css_class}"))
            self._marks.append(element("path", d=f"M{path}", class_=f"line {css_class}"))

    def add_stack(self, start_ms: float, end_ms: float, parts: Sequence[tuple[float, str]]) -> None:
        """A bar of parts, the first at the bottom; each is a height and a class."""
        x = self.x(start_ms)
        width = max(_LEAST_BAR, self.x(end_ms) - x - 0.5)
        level = 0.0
        for height, css_class in parts:
            if height > 0:
                top = self.y(level + height)
                self._marks.append(
                    element(
                        "rect",
                        x=x,
                        y=top,
                        width=width,
                        height=self.y(level) - top,
                        class_=f"bar {css_class}",
                    )
                )
                level += height

    def add_band(self, start_ms: float, end_ms: float, note: str) -> None:
        """A time in which there was nothing, ending with a line."""
        x, end = self.x(start_ms), self.x(end_ms)
        height = self.y(0) - _TOP
        band = element("rect", x=x, y=_TOP, width=max(0.0, end - x), height=height, class_="band")
        line = element("line", x1=end, x2=end, y1=_TOP, y2=self.y(0), class_="restart")
        self._marks.append(element("g", title(note), band, line))

    def add_hover(self, start_ms: float, end_ms: float, note: str) -> None:
        """Nothing to be seen until the mouse is there. Add it after what it lies upon."""
        x = self.x(start_ms)
        self._marks.append(
            element(
                "rect",
                title(note),
                x=x,
                y=_TOP,
                width=self.x(end_ms) - x,
                height=self.y(0) - _TOP,
                class_="hover",
            )
        )

    def content(self) -> str:
        """The elements, for an <svg> or <g> of the frame's size."""
        parts = [text(self._frame.title, x=0, y=18, class_="heading")]
        parts.extend(self._drawn_legend())
        parts.extend(self._axes())
        if self._marks:
            parts.extend(self._marks)
        else:
            middle = (_TOP + self.y(0)) / 2
            parts.append(
                text("nothing to show", x=self._frame.width / 2, y=middle, class_="label middle")
            )
        return "".join(parts)

    def svg(self) -> str:
        return element(
            "svg",
            self.content(),
            viewBox=f"0 0 {self._frame.width} {self._frame.height}",
            role="img",
            aria_label=self._frame.title,
        )

    def _axes(self) -> list[str]:
        left, right, bottom = _LEFT, self._frame.width - _RIGHT, self.y(0)
        parts = []
        for tick in self._frame.y_ticks:
            y = self.y(tick)
            css_class = "axis" if tick == 0 else "grid"
            parts.append(element("line", x1=left, x2=right, y1=y, y2=y, class_=css_class))
            label = self._frame.y_label(tick)
            parts.append(text(label, x=left - 8, y=y + 4, class_="label end"))
        ticks = time_ticks(self._frame.start_ms, self._frame.end_ms)
        for tick, label in zip(ticks, time_labels(ticks), strict=True):
            x = self.x(tick)
            parts.append(element("line", x1=x, x2=x, y1=bottom, y2=bottom + 4, class_="axis"))
            parts.append(text(label, x=x, y=bottom + 18, class_="label middle"))
        return parts

    def _drawn_legend(self) -> list[str]:
        """From the right edge to the left, so that it ends where the chart does."""
        parts = []
        x = float(self._frame.width - _RIGHT)
        for label, css_class in reversed(self._legend):
            shown = label if len(label) <= _LABEL_LETTERS else f"{label[: _LABEL_LETTERS - 1]}…"
            x -= len(shown) * _LETTER_WIDTH
            swatch = element("rect", x=x - 16, y=9, width=10, height=10, rx=2, class_=css_class)
            if css_class == RESTART_CLASS:
                swatch = element("line", x1=x - 11, x2=x - 11, y1=7, y2=21, class_=css_class)
            whole = [] if shown == label else [title(label)]
            parts.append(element("g", *whole, swatch, text(shown, x=x, y=18, class_="legend")))
            x -= _LEGEND_GAP
        return parts


def _stretches(
    points: Sequence[tuple[float, float] | None],
) -> list[list[tuple[float, float]]]:
    """The points between gaps."""
    stretches: list[list[tuple[float, float]]] = [[]]
    for point in points:
        if point is not None:
            stretches[-1].append(point)
        elif stretches[-1]:
            stretches.append([])
    return [stretch for stretch in stretches if stretch]
