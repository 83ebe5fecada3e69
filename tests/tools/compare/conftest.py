"""Kafka's own commands, and ours beside them."""

from collections.abc import Callable

import pytest

from tests.compat.apache_tools import ApacheTools
from tests.compat.outcome import Outcome, run_ours

Compare = Callable[..., Outcome]


@pytest.fixture
def compare(apache: ApacheTools) -> Compare:
    """Runs both commands with the same arguments: exit code and standard output are the same.

    `normalise` takes out of a standard output what differs from run to run.
    """

    def run_both(
        command: str,
        *arguments: str,
        stdin: str = "",
        normalise: Callable[[str], object] = str,
    ) -> Outcome:
        theirs = apache.run(command, *arguments, stdin=stdin)
        ours = run_ours(command, *arguments, stdin=stdin)
        assert normalise(ours.stdout) == normalise(theirs.stdout), f"{ours=}\n{theirs=}"
        assert ours.code == theirs.code, f"{ours=}\n{theirs=}"
        return ours

    return run_both
