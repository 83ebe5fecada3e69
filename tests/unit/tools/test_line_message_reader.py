import pytest

from kafkapy.common.errors import InvalidConfigurationError, KafkaError
from kafkapy.tools.line_message_reader import Line, LineMessageReader

_ALL = {"parse.key": "true", "parse.headers": "true"}


@pytest.mark.parametrize(
    ("properties", "line", "expected"),
    [
        ({}, "a\tb", Line(None, b"a\tb", [])),
        ({}, "", Line(None, b"", [])),
        ({"parse.key": "TRUE "}, "k\tv\tw", Line(b"k", b"v\tw", [])),
        ({"parse.key": "yes"}, "k\tv", Line(None, b"k\tv", [])),
        (_ALL, "h:1,g:\tk\tv", Line(b"k", b"v", [("h", b"1"), ("g", b"")])),
        (_ALL, "h:1,,\tk\tv", Line(b"k", b"v", [("h", b"1")])),
        ({"key.separator": "", "headers.separator": ""}, "v", Line(None, b"v", [])),
        (_ALL | {"null.marker": "-"}, "h:-\t-\t-", Line(None, None, [("h", None)])),
        (_ALL | {"null.marker": "-"}, "-\tk\tv", Line(b"k", b"v", [])),
        (_ALL | {"ignore.error": "true"}, "just this", Line(None, b"just this", [])),
        (_ALL | {"ignore.error": "true"}, "h\tk\tv", Line(b"k", b"v", [("h", None)])),
        ({}, "\udcff", Line(None, b"\xff", [])),
    ],
)
def test_a_line_is_taken_apart_as_told(
    properties: dict[str, str], line: str, expected: Line
) -> None:
    assert LineMessageReader.of(properties).parse(line, 1) == expected


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("x", "No headers delimiter found on line number 2: 'x'"),
        ("h:v\tx", "No key separator found on line number 2: 'h:v\tx'"),
        ("h\tk\tv", "No header key separator found in pair 'h' on line number 2"),
        ("\tk\tv", "No header key separator found in pair '' on line number 2"),
        ("h:v,,g:w\tk\tv", "No header key separator found in pair '' on line number 2"),
    ],
)
def test_a_line_that_lacks_a_separator_is_named(line: str, said: str) -> None:
    lines = LineMessageReader.of(_ALL).lines(["h:v\tk\tv\n", line])

    next(lines)
    with pytest.raises(KafkaError) as raised:
        next(lines)

    assert str(raised.value) == said


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("headers.delimiter", ","),
        ("headers.delimiter", ":"),
        ("headers.separator", ":"),
        ("null.marker", "\t"),
        ("null.marker", ","),
    ],
)
def test_separators_that_cannot_be_told_apart_are_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=rf"{name}.* may not be equal"):
        LineMessageReader.of({name: value})


@pytest.mark.parametrize(
    "name", ["key.separator", "headers.delimiter", "headers.separator", "headers.key.separator"]
)
def test_an_empty_separator_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=rf"{name} may not be empty"):
        LineMessageReader.of(_ALL | {name: ""})
