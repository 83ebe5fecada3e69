"""Tables of a pipeline's file, taken key by key."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TypeVar

from kafkapy.pipeline.pipeline_errors import OptionError

E = TypeVar("E", bound=Enum)


class TomlTable:
    """One table; what is wrong with a key is told with the file, the table and the key. For one
    thread.

    The keys that were asked for are the known ones: `refuse_others` names the rest.
    """

    def __init__(self, place: str, values: Mapping[str, object]) -> None:
        # constant after construction
        self._place = place
        self._values = values
        self._known: set[str] = set()

    def error(self, key: str, reason: str) -> OptionError:
        return OptionError(f"{self._place} {key}" if key else self._place, reason)

    def has(self, key: str) -> bool:
        self._known.add(key)
        return key in self._values

    def named(self, place: str) -> None:
        """From here on messages call the table so: its name was one of its keys."""
        self._place = place

    def text(self, key: str) -> str:
        value = self.optional_text(key)
        if value is None:
            raise self.error(key, "is missing")
        return value

    def optional_text(self, key: str) -> str | None:
        value = self._value(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self._wrong(key, "a string")
        if not value.strip():
            raise self.error(key, "is empty")
        return value

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._value(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def number(self, key: str, *, default: int, at_least: int, at_most: int | None = None) -> int:
        value = self._value(key)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value < at_least:
            raise self._wrong(key, f"a whole number, at least {at_least}")
        if at_most is not None and value > at_most:
            raise self._wrong(key, f"a whole number, at most {at_most}")
        return value

    def texts(self, key: str, *, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """An array of strings, or one string alone."""
        value = self._value(key)
        if value is None:
            return default
        values = [value] if isinstance(value, str) else value
        if not isinstance(values, list) or not values:
            raise self._wrong(key, "a string or an array of strings")
        if not all(isinstance(text, str) and text.strip() for text in values):
            raise self._wrong(key, "a string or an array of strings, none of them empty")
        return tuple(values)

    def choice(self, key: str, kind: type[E], default: E | None = None) -> E:
        value = self.optional_text(key)
        if value is None:
            if default is None:
                raise self.error(key, f"is missing; it is one of {_listed(_texts_of(kind))}")
            return default
        for choice in kind:
            if choice.value == value:
                return choice
        raise self.error(key, f"{value!r} is none of {_listed(_texts_of(kind))}")

    def options(self, key: str, *, instead: Mapping[str, str] = {}) -> dict[str, str]:
        """A table of strings, numbers and booleans, as the texts that Spark takes; `instead` has
        the options, in lower case, for which there are keys.
        """
        value = self._value(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._wrong(key, "a table")
        options = {}
        # Dots in a bare key make tables inside: kafka.security.protocol = "SSL".
        for name, option in _flat(value):
            if name.lower() in instead:
                raise self.error(f"{key}.{name}", f"set {instead[name.lower()]} instead")
            if isinstance(option, bool):
                options[name] = "true" if option else "false"
            elif isinstance(option, str | int | float):
                options[name] = str(option)
            else:
                raise self.error(f"{key}.{name}", "expected a string, a number or a boolean")
        return options

    def table(self, key: str) -> TomlTable | None:
        value = self._value(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self._wrong(key, "a table")
        return TomlTable(f"{self._place} {key}", value)

    def refuse_others(self) -> None:
        for key in self._values:
            if key not in self._known:
                near = difflib.get_close_matches(key, self._known, n=1)
                hint = f"did you mean {near[0]}?" if near else f"known: {_listed(self._known)}"
                raise self.error(key, f"is unknown here; {hint}")

    def _value(self, key: str) -> object:
        self._known.add(key)
        return self._values.get(key)

    def _wrong(self, key: str, expected: str) -> OptionError:
        return self.error(key, f"expected {expected}, not {self._values[key]!r}")


def _flat(table: Mapping[str, object], prefix: str = "") -> Iterable[tuple[str, object]]:
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _texts_of(kind: type[Enum]) -> list[str]:
    return [str(choice.value) for choice in kind]


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))
