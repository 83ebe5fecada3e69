"""Reads sasl.jaas.config: `<login module> <flag> <option>=<value> ...;`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from kafkapy.common.config_def import InvalidValueError
from kafkapy.common.password import HIDDEN, Password

_NAME = "sasl.jaas.config"
_FLAGS = frozenset({"required", "requisite", "sufficient", "optional"})
_TOKEN = re.compile(
    r"""\s*(?:(?P<comment>//[^\n]*|/\*.*?\*/)
            |"(?P<double>(?:[^"\\]|\\.)*)"
            |'(?P<single>(?:[^'\\]|\\.)*)'
            |(?P<word>[\w$.\-]+)
            |(?P<sign>[=;]))\s*""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "b": "\b", "f": "\f"}


@dataclass(frozen=True, slots=True)
class JaasConfig:
    """A login module and its options, which may be secrets. Immutable.

    Ports: org.apache.kafka.common.security.JaasConfig
    """

    login_module: str
    options: Mapping[str, str] = field(repr=False)

    @staticmethod
    def parse(config: Password) -> JaasConfig:
        """InvalidValueError says what is wrong, and nothing of what is in the text."""
        tokens = list(_tokens(config.value))
        if len(tokens) < 3 or tokens[-1] != _END:
            raise _invalid("it must be a login module, a flag such as required, options and a ;")
        login_module, flag, *options = tokens[:-1]
        if flag.text.lower() not in _FLAGS:
            raise _invalid(f"after the login module comes one of {', '.join(sorted(_FLAGS))}")
        if _END in options:
            raise _invalid("it must name one login module only")
        names, signs, values = options[::3], options[1::3], options[2::3]
        if len(names) != len(values) or any(sign != _EQUALS for sign in signs):
            raise _invalid("its options must have the form name=value, values in quotes")
        pairs = zip(names, values, strict=True)
        return JaasConfig(login_module.text, {name.text: value.text for name, value in pairs})

    def option(self, name: str) -> str:
        try:
            return self.options[name]
        except KeyError:
            raise _invalid(f"the option {name} is missing") from None


class _Token(NamedTuple):
    text: str
    is_sign: bool = False


_EQUALS = _Token("=", is_sign=True)
_END = _Token(";", is_sign=True)


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    text = text.strip()
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise _invalid(f"it cannot be understood from character {position + 1} on")
        position = found.end()
        match found.lastgroup:
            case "comment":
                continue
            case "sign" | "word" as kind:
                yield _Token(found[kind], is_sign=kind == "sign")
            case kind:
                assert kind is not None
                yield _Token(_ESCAPE.sub(_unescaped, found[kind]))


def _unescaped(escape: re.Match[str]) -> str:
    return _ESCAPED.get(escape[1], escape[1])


def quoted(value: str) -> str:
    """A value as `parse` reads it back."""
    return '"' + re.sub(r'(["\\])', r"\\\1", value).replace("\n", "\\n") + '"'


def _invalid(reason: str) -> InvalidValueError:
    return InvalidValueError(_NAME, HIDDEN, reason)
