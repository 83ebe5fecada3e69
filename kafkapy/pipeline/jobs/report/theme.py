"""Colours and type of the report, for light and dark surroundings.

The series' colours differ in lightness as well as in hue, so that they stay apart for the
colour-blind (by about 0.1 in OKLab or more), and have a contrast of 3 to their background.
"""

from __future__ import annotations

SERIES_CLASSES = ("s1", "s2", "s3", "s4", "s5", "s6")
REST_CLASS = "rest"

_LIGHT = {
    "page": "#f6f7f9",
    "surface": "#ffffff",
    "border": "#e3e6eb",
    "text": "#1b2430",
    "muted": "#5c6878",
    "grid": "#e9ecf0",
    "axis": "#aab3bf",
    "band": "#e9ecf0",
    "bad": "#b3261e",
    "s1": "#0869bb",
    "s2": "#e56f02",
    "s3": "#00451d",
    "s4": "#4d1f6b",
    "s5": "#a1337a",
    "s6": "#785f1a",
    "rest": "#88909c",
}
_DARK = {
    "page": "#12161c",
    "surface": "#1a2028",
    "border": "#2d3641",
    "text": "#e7ebf0",
    "muted": "#9aa6b4",
    "grid": "#28303a",
    "axis": "#566271",
    "band": "#28303a",
    "bad": "#ff8a80",
    "s1": "#62a4fd",
    "s2": "#fb9d28",
    "s3": "#61e3a6",
    "s4": "#a151c4",
    "s5": "#d282aa",
    "s6": "#f0e320",
    "rest": "#69737d",
}
FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',sans-serif"


def _variables(colours: dict[str, str]) -> str:
    return ":root{" + "".join(f"--{name}:{value};" for name, value in colours.items()) + "}"


VARIABLES = _variables(_LIGHT) + "@media(prefers-color-scheme:dark){" + _variables(_DARK) + "}"

CHART_STYLE = (
    f"svg text{{font-family:{FONT};font-size:12px;fill:var(--muted);"
    "font-variant-numeric:tabular-nums}"
    "svg .heading{font-size:14px;font-weight:600;fill:var(--text)}"
    "svg .legend{fill:var(--text)}"
    "svg .end{text-anchor:end}"
    "svg .middle{text-anchor:middle}"
    "svg .grid{stroke:var(--grid)}"
    "svg .axis{stroke:var(--axis)}"
    "svg .line{fill:none;stroke-width:1.75;stroke-linejoin:round;stroke-linecap:round}"
    "svg .thin{stroke-width:1.5;stroke-dasharray:5 3}"
    "svg .area{stroke:none;opacity:.14}"
    "svg .band{fill:var(--band)}"
    "svg .restart{stroke:var(--muted);stroke-dasharray:3 3}"
    "svg .hover{fill:var(--text);fill-opacity:0}"
    "svg .hover:hover{fill-opacity:.07}"
    + "".join(
        f"svg .{name}{{fill:var(--{name})}}svg .line.{name}{{fill:none;stroke:var(--{name})}}"
        for name in (*SERIES_CLASSES, REST_CLASS)
    )
)
