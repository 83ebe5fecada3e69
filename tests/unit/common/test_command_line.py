import argparse
from collections.abc import Sequence

import pytest

from kafkapy.common.command_line import CommandParser, parse_overrides, run_command
from kafkapy.common.errors import KafkaError


@pytest.fixture
def parser() -> CommandParser:
    parser = CommandParser("kafka-example", "An example.")
    parser.add_argument("--topic", help="a topic")
    parser.add_argument("--property", action="append", help="a property")
    parser.add_argument("--offset", type=int, help="an offset")
    return parser


@pytest.mark.parametrize(
    "words", [["--topic", "t", "--offset", "-5"], ["--topic=t", "--offset=-5"]]
)
def test_a_value_follows_its_option_or_an_equals_sign(
    parser: CommandParser, words: Sequence[str]
) -> None:
    parsed = parser.parse_args(words)

    assert (parsed.topic, parsed.offset) == ("t", -5)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--topic", "a", "--topic", "b"], "--topic can be given only once"),
        (["--topi", "a"], "unrecognized arguments: --topi a"),
        (["--topic"], "argument --topic: expected one argument"),
        (["--offset", "x"], "argument --offset: invalid int value: 'x'"),
    ],
)
def test_wrong_arguments_are_one_line_and_exit_code_1(
    parser: CommandParser, words: Sequence[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parser.parse_args(words)

    assert end.value.code == 1
    assert capsys.readouterr() == ("", f"{said} (see kafka-example --help)\n")


def test_a_parser_can_be_used_again(parser: CommandParser) -> None:
    assert [parser.parse_args(["--topic", name]).topic for name in "ab"] == ["a", "b"]


def test_an_option_for_several_values_may_be_repeated(parser: CommandParser) -> None:
    assert parser.parse_args(["--property", "a=1", "--property", "b=2"]).property == ["a=1", "b=2"]


@pytest.mark.parametrize("given", [(), ("list", "describe")])
def test_exactly_one_action_is_required(
    parser: CommandParser, given: Sequence[str], capsys: pytest.CaptureFixture[str]
) -> None:
    parsed = argparse.Namespace(list="list" in given, describe="describe" in given)

    with pytest.raises(SystemExit):
        parser.require_one_of(parsed, "--list", "--describe")

    assert "exactly one action: --list, --describe" in capsys.readouterr().err


def test_errors_of_kafka_are_one_line_and_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    def command(arguments: Sequence[str]) -> int:
        raise KafkaError(f"no such topic: {arguments[0]}")

    with pytest.raises(SystemExit) as end:
        run_command(command, ["t"])

    assert end.value.code == 1
    assert capsys.readouterr().err == "no such topic: t\n"


def test_properties_are_split_at_the_first_equals_sign() -> None:
    assert parse_overrides(["a=b=c", "d= e "]) == {"a": "b=c", "d": "e"}


@pytest.mark.parametrize("word", ["a", "=b", " =b"])
def test_a_word_that_is_no_property_is_refused_by_name(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse_overrides([word], "--property")

    assert capsys.readouterr().err == f"--property {word}: expected key=value\n"
