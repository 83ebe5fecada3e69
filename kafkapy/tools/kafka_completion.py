"""bin/kafka-completion: what a shell needs to complete the options of every command."""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from kafkapy import tools
from kafkapy.common.command_line import CommandParser, run_command

_FILE_METAVARS = ("FILE", "server.properties")
# By name: of what it does nothing is needed here, and Spark need not be installed.
_PIPELINE = "kafkapy.pipeline.kafka_pipeline"


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a command, as shells want to know it."""

    names: tuple[str, ...]
    help: str
    takes_value: bool
    choices: tuple[str, ...]
    is_file: bool


@dataclass(frozen=True, slots=True)
class Command:
    """A command or one of its sub-commands."""

    name: str
    options: tuple[Option, ...]
    sub_commands: tuple[Command, ...]


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-completion",
        "Print a script that lets a shell complete the options of the kafka commands. For bash:"
        ' eval "$(kafka-completion bash)"',
    )
    command.add_argument("shell", choices=tuple(_SHELLS), help="the shell that reads the script")
    return command


def run(arguments: Sequence[str]) -> int:
    shell = parser().parse_args(arguments).shell
    for name, of_command in command_parsers():
        print(_SHELLS[shell](describe(name, of_command)))
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


def command_parsers() -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Each command there is, by name, with its parser."""
    for command, module in command_modules().items():
        yield command, importlib.import_module(module).parser()


def command_modules() -> dict[str, str]:
    """Each command there is, by name, with the name of its module."""
    modules = [
        f"{tools.__name__}.{info.name}"
        for info in pkgutil.iter_modules(tools.__path__)
        if info.name.startswith("kafka_")
    ]
    commands = {name.rpartition(".")[2].replace("_", "-"): name for name in [*modules, _PIPELINE]}
    return dict(sorted(commands.items()))


def describe(name: str, of_command: argparse.ArgumentParser) -> Command:
    options, sub_commands = [], []
    for action in of_command._actions:
        if isinstance(action, argparse._SubParsersAction):
            sub_commands += [describe(sub, parser) for sub, parser in action.choices.items()]
            continue
        options.append(
            Option(
                names=tuple(action.option_strings),
                help=action.help or "",
                takes_value=action.nargs != 0,
                choices=tuple(map(str, action.choices or ())),
                is_file=action.metavar in _FILE_METAVARS,
            )
        )
    return Command(name, tuple(options), tuple(sub_commands))


def _bash(command: Command) -> str:
    """A function with a case for each option that takes a value, bound to the command."""
    function = f"_{command.name.replace('-', '_')}"
    words = _words(command)
    cases = [
        f"        {'|'.join(option.names)}) {_bash_values(option)}; return ;;"
        for option in _all_options(command)
        if option.names and option.takes_value
    ]
    return "\n".join(
        [
            f"{function}() {{",
            '    local word="${COMP_WORDS[COMP_CWORD]}"',
            '    case "${COMP_WORDS[COMP_CWORD-1]}" in',
            *cases,
            "    esac",
            f'    COMPREPLY=($(compgen -W "{" ".join(words)}" -- "$word"))',
            *(
                ['    COMPREPLY+=($(compgen -f -- "$word"))']
                if any(option.is_file and not option.names for option in command.options)
                else []
            ),
            "}",
            f"complete -F {function} {command.name}",
        ]
    )


def _bash_values(option: Option) -> str:
    if option.choices:
        return f'COMPREPLY=($(compgen -W "{" ".join(option.choices)}" -- "$word"))'
    return 'COMPREPLY=($(compgen -f -- "$word"))' if option.is_file else "COMPREPLY=()"


def _zsh(command: Command) -> str:
    """The bash function serves: zsh brings bashcompinit for that."""
    load = "(( $+functions[complete] )) || { autoload -U +X bashcompinit && bashcompinit; }"
    return f"{load}\n{_bash(command)}"


def _fish(command: Command) -> str:
    lines = []
    for sub in command.sub_commands:
        lines.append(f"complete -c {command.name} -n __fish_use_subcommand -a {sub.name}")
    for option in _all_options(command):
        if not option.names:
            lines += [f"complete -c {command.name} -f -a '{c}'" for c in option.choices]
            continue
        flags = [
            f"-l {name[2:]}" if name.startswith("--") else f"-o {name[1:]}" for name in option.names
        ]
        if option.takes_value:
            flags.append("-r" if option.is_file else "-x")
        if option.choices:
            flags.append(f"-a '{' '.join(option.choices)}'")
        help_text = option.help.replace("\\", "\\\\").replace("'", "\\'").replace("%%", "%")
        lines.append(f"complete -c {command.name} {' '.join(flags)} -d '{help_text}'")
    return "\n".join(lines)


def _words(command: Command) -> list[str]:
    words = [sub.name for sub in command.sub_commands]
    for option in _all_options(command):
        words += option.names or option.choices
    return words


def _all_options(command: Command) -> list[Option]:
    """Its own and those of sub-commands, each once."""
    options = {option.names or option.choices: option for option in command.options}
    for sub in command.sub_commands:
        for option in sub.options:
            options.setdefault(option.names or option.choices, option)
    return list(options.values())


_SHELLS: dict[str, Callable[[Command], str]] = {"bash": _bash, "zsh": _zsh, "fish": _fish}


if __name__ == "__main__":
    sys.exit(main())
