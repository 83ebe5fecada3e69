"""Records out of lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from kafkapy.common.errors import InvalidConfigurationError, KafkaError
from kafkapy.tools.java_text import is_true

# Bytes that are no UTF-8 are kept as they are.
ENCODING_ERRORS = "surrogateescape"


class Line(NamedTuple):
    """A line taken apart."""

    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes | None]]


@dataclass(frozen=True, slots=True)
class LineMessageReader:
    """Takes `headers<delimiter>key<separator>value` apart, as far as it is told to.

    Ports: kafka.tools.ConsoleProducer.LineMessageReader
    """

    parse_key: bool = False
    parse_headers: bool = False
    ignore_error: bool = False
    key_separator: str = "\t"
    headers_delimiter: str = "\t"
    headers_separator: str = ","
    headers_key_separator: str = ":"
    null_marker: str | None = None

    @staticmethod
    def of(properties: Mapping[str, str]) -> LineMessageReader:
        """InvalidConfigurationError for separators that cannot be told from one another."""
        default = LineMessageReader()
        reader = LineMessageReader(
            parse_key=is_true(properties.get("parse.key", "")),
            parse_headers=is_true(properties.get("parse.headers", "")),
            ignore_error=is_true(properties.get("ignore.error", "")),
            key_separator=properties.get("key.separator", default.key_separator),
            headers_delimiter=properties.get("headers.delimiter", default.headers_delimiter),
            headers_separator=properties.get("headers.separator", default.headers_separator),
            headers_key_separator=properties.get(
                "headers.key.separator", default.headers_key_separator
            ),
            null_marker=properties.get("null.marker"),
        )
        reader._check()
        return reader

    def _check(self) -> None:
        names = {
            "headers.delimiter": self.headers_delimiter,
            "headers.separator": self.headers_separator,
            "headers.key.separator": self.headers_key_separator,
        }
        pairs = [(a, b) for a in names for b in names if a < b]
        for first, second in pairs:
            if names[first] == names[second]:
                raise InvalidConfigurationError(f"{first} and {second} may not be equal")
        for name, separator in {**names, "key.separator": self.key_separator}.items():
            is_used = self.parse_key if name == "key.separator" else self.parse_headers
            if is_used and not separator:
                raise InvalidConfigurationError(f"{name} may not be empty")
            if self.null_marker == separator:
                raise InvalidConfigurationError(f"null.marker and {name} may not be equal")

    def lines(self, lines: Iterable[str]) -> Iterator[Line]:
        """KafkaError names the line that lacks a separator."""
        for number, line in enumerate(lines, 1):
            yield self.parse(line.removesuffix("\n"), number)

    def parse(self, line: str, number: int) -> Line:
        rest = line
        headers = key = None
        if self.parse_headers:
            headers, rest = self._split(
                line, rest, self.headers_delimiter, name="headers delimiter", number=number
            )
        if self.parse_key:
            key, rest = self._split(
                line, rest, self.key_separator, name="key separator", number=number
            )
        return Line(
            self._bytes(key),
            self._bytes(rest),
            []
            if headers is None or headers == self.null_marker
            else [self._header(pair, number) for pair in self._pairs(headers)],
        )

    def _split(
        self, line: str, rest: str, separator: str, *, name: str, number: int
    ) -> tuple[str | None, str]:
        part, found, after = rest.partition(separator)
        if found:
            return part, after
        if self.ignore_error:
            return None, rest
        raise KafkaError(f"No {name} found on line number {number}: '{line}'")

    def _pairs(self, headers: str) -> list[str]:
        """A separator may end the headers too."""
        pairs = headers.split(self.headers_separator)
        while len(pairs) > 1 and not pairs[-1]:
            pairs.pop()
        return pairs

    def _header(self, pair: str, number: int) -> tuple[str, bytes | None]:
        key, found, value = pair.partition(self.headers_key_separator)
        if not found:
            if self.ignore_error:
                return pair, None
            raise KafkaError(
                f"No header key separator found in pair '{pair}' on line number {number}"
            )
        if key == self.null_marker:
            raise KafkaError(
                f"A header key cannot be null, but that on line number {number} is the null marker"
                f" '{key}'"
            )
        return key, self._bytes(value)

    def _bytes(self, text: str | None) -> bytes | None:
        if text is None or text == self.null_marker:
            return None
        return text.encode("utf-8", ENCODING_ERRORS)
