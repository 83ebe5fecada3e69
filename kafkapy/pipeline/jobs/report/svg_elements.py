"""Text of SVG and HTML elements."""

from __future__ import annotations

from html import escape


def element(name: str, *children: str, **attributes: object) -> str:
    """`children` are elements already; an attribute is named with _ for -, and a trailing _ keeps
    it apart from a word of Python's. None leaves an attribute out.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{''.join(children)}</{name}>" if children else f"<{name}{given}/>"


def text(content: str, **attributes: object) -> str:
    return element("text", escape(content), **attributes)


def title(content: str) -> str:
    """What is shown where the mouse rests on the element that has it."""
    return element("title", escape(content))


def number(value: float) -> str:
    """A tenth of a pixel is enough for every eye."""
    shown = f"{value:.1f}"
    return shown.removesuffix(".0")


def _text(value: object) -> str:
    return number(value) if isinstance(value, float) else str(value)
