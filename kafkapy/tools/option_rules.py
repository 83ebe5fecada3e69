"""Which options of a command go together."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from kafkapy.common.command_line import CommandParser


class OptionRules:
    """Checks of what was given, each of which ends the command with one line if it is broken.

    Ports: org.apache.kafka.server.util.CommandLineUtils
    """

    def __init__(self, command: CommandParser, parsed: argparse.Namespace) -> None:
        # constant after construction
        self._command = command
        self._parsed = parsed

    def given(self, option: str) -> bool:
        value = getattr(self._parsed, option.lstrip("-").replace("-", "_").replace(".", "_"))
        return value is not None and value is not False and value != []

    def any_given(self, options: Iterable[str]) -> list[str]:
        return [option for option in options if self.given(option)]

    def exactly_one(self, options: Iterable[str]) -> str:
        """Which one of them was given."""
        options = tuple(options)
        given = self.any_given(options)
        if len(given) != 1:
            self._command.error(f"Give exactly one of {', '.join(options)}")
        return given[0]

    def required(self, *options: str) -> None:
        for option in options:
            if not self.given(option):
                self._command.error(f"Missing required argument {option}")

    def refused(self, option: str, *others: str) -> None:
        """`option` cannot be given with any of the others."""
        if self.given(option):
            for other in self.any_given(others):
                self._command.error(f"{option} cannot be used with {other}")

    def only_with(self, option: str, actions: Iterable[str]) -> None:
        """`option` is of use with one of the actions only."""
        actions = tuple(actions)
        if self.given(option) and not self.any_given(actions):
            self._command.error(f"{option} can only be used with {' or '.join(actions)}")
