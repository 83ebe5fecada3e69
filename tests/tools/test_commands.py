"""What all commands promise: a launcher, an installed script, help, one-line errors, completion."""

import configparser
import os
import subprocess
import sys

import pytest

from kafkapy import __version__
from kafkapy.tools.kafka_completion import command_parsers
from tests.compat.outcome import run_ours
from tests.helpers.server_process import ROOT

_COMMANDS = [name for name, _ in command_parsers()]
# It needs more than the others, and is not among kafkapy's tools.
_PIPELINE = "kafka-pipeline"


def _run(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / "bin" / command), *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHON": sys.executable},
    )


def _in_shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["sh", "-c", f"{ROOT / 'bin'}/{line}"],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, "PYTHON": sys.executable},
    )


@pytest.mark.parametrize("command", _COMMANDS)
def test_launcher_shows_the_help_of_its_command(command: str) -> None:
    shown = _run(command, "--help")

    assert (shown.returncode, shown.stderr) == (0, "")
    assert shown.stdout.startswith(f"usage: {command} ")


def test_launchers_are_the_same_file() -> None:
    tools = set(_COMMANDS) - {_PIPELINE}

    assert len({(ROOT / "bin" / command).read_text() for command in tools}) == 1


def test_every_command_is_installed_as_a_script() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg")
    scripts = setup["options.entry_points"]["console_scripts"].split("\n")

    assert sorted(filter(None, scripts)) == [
        f"{name} = {'kafkapy.pipeline' if name == _PIPELINE else 'kafkapy.tools'}"
        f".{name.replace('-', '_')}:main"
        for name in sorted(_COMMANDS)
    ]


@pytest.mark.parametrize("command", _COMMANDS)
def test_every_option_is_described(command: str) -> None:
    parser = dict(command_parsers())[command]

    undescribed = [action.dest for action in parser._actions if not action.help]

    assert undescribed == []


@pytest.mark.parametrize("command", _COMMANDS)
def test_an_unknown_option_is_one_line_and_exit_code_1(command: str) -> None:
    outcome = run_ours(command, "--no-such-option")

    assert (outcome.code, outcome.stdout) == (1, "")
    assert len(outcome.stderr.splitlines()) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_a_full_disk_is_one_line_and_exit_code_1() -> None:
    ended = _in_shell("kafka-completion bash >/dev/full")

    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == "Cannot write: No space left on device\n"


def test_closed_standard_streams_are_as_good_as_none() -> None:
    ended = _in_shell("kafka-completion bash >&-")

    assert (ended.returncode, ended.stderr) == (0, "")


def test_what_belongs_on_a_closed_standard_error_is_not_on_standard_output() -> None:
    ended = _in_shell("kafka-topics --no-such-option 2>&-")

    assert (ended.returncode, ended.stdout) == (1, "")


@pytest.mark.parametrize("command", _COMMANDS)
def test_version_is_shown(command: str) -> None:
    assert run_ours(command, "--version").lines == [f"kafkapy {__version__}"]


def test_bash_completes_the_options_of_each_command() -> None:
    script = run_ours("kafka-completion", "bash").stdout
    ask = (
        f"{script}\nfor command in {' '.join(_COMMANDS)}; do"
        ' COMP_WORDS=("$command" --hel); COMP_CWORD=1; "_${command//-/_}";'
        ' echo "$command ${COMPREPLY[*]}"; complete -p "$command" > /dev/null; done'
    )

    done = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, timeout=20)

    assert done.stderr == ""
    assert done.stdout.splitlines() == [f"{command} --help" for command in _COMMANDS]


def test_zsh_is_told_to_load_what_bash_has() -> None:
    bash = run_ours("kafka-completion", "bash").stdout
    zsh = run_ours("kafka-completion", "zsh").lines

    assert sum("bashcompinit" in line for line in zsh) >= 1
    assert [line for line in zsh if "bashcompinit" not in line] == bash.splitlines()


def test_fish_completion_describes_options() -> None:
    lines = run_ours("kafka-completion", "fish").lines

    assert "complete -c kafka-completion -l help -o h -d 'show this help message and exit'" in [
        line.replace("-o h -l help", "-l help -o h") for line in lines
    ]
    assert "complete -c kafka-completion -f -a 'zsh'" in lines
