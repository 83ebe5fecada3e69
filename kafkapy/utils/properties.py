"""Java property files, as far as server.properties needs them."""

import re
from collections.abc import Iterator
from pathlib import Path

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_SEPARATOR = re.compile(r"(?<!\\)(?:\s*[=:]\s*|\s+)")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)


def load_properties(path: Path, *, keep_blanks: bool = False) -> dict[str, str]:
    """Raises OSError if the file cannot be read, UnicodeDecodeError if it is not text."""
    return parse_properties(path.read_text(encoding="utf-8"), keep_blanks=keep_blanks)


def parse_properties(text: str, *, keep_blanks: bool = False) -> dict[str, str]:
    """Comments (# and !), continuation lines and backslash escapes; a later line wins.

    Blanks at the end of a value are part of it in Java. Settings do without them, separators do
    not: `keep_blanks`.
    """
    properties = {}
    for line in _logical_lines(text):
        if not keep_blanks:
            line = line.rstrip()
        parts = _SEPARATOR.split(line, maxsplit=1)
        properties[_unescape(parts[0])] = _unescape(parts[1]) if len(parts) > 1 else ""
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    pending = ""
    for raw in text.splitlines():
        line = raw.lstrip()
        if not pending and (not line or line[0] in "#!"):
            continue
        trailing_backslashes = len(line) - len(line.rstrip("\\"))
        if trailing_backslashes % 2 == 1:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        escaped = match.group(1)
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        return _ESCAPES.get(escaped, escaped)

    return _ESCAPE.sub(replace, text)
