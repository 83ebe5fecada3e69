"""Members of consumer groups under test: each a process, whatever language its client is in."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.compat.tools import java_command, node_command

_ROOT = Path(__file__).resolve().parents[2]
_TIMEOUT_S = 30


def member_command(
    client: str, bootstrap: str, topic: str, group: str, assignor: str
) -> tuple[list[str], dict[str, str] | None]:
    """Skips the test if the client is not there."""
    arguments = [bootstrap, topic, group, assignor]
    if client == "java":
        return java_command("GroupConsumer", *arguments, heap="128m"), None
    if client == "kafkajs":
        command, environment = node_command("group_consumer.js")
        return [*command, *arguments], environment
    return [sys.executable, "-m", "tests.compat.group_consumer", client, *arguments], None


class GroupMember:
    """What one member has reported so far. Read by the test's thread, written by its own."""

    def __init__(self, client: str, bootstrap: str, topic: str, group: str, assignor: str) -> None:
        command, environment = member_command(client, bootstrap, topic, group, assignor)
        self.assignment: list[int] = []
        self.records: list[tuple[int, int]] = []
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            cwd=_ROOT,
            text=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            kind, _, rest = line.strip().partition(" ")
            if kind == "A":
                self.assignment = [int(p) for p in rest.split(",") if p]
            elif kind == "R":
                partition, offset = rest.split()
                self.records.append((int(partition), int(offset)))

    def leave(self) -> None:
        """Ends it cleanly; the member commits and leaves the group."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            code = None
        self.kill()
        assert code == 0, f"the member ended with {code}"
        self.assignment = []

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


def wait_for(what: str, condition: Callable[[], bool], state: Callable[[], object]) -> None:
    deadline = time.monotonic() + _TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, f"{what}: {state()}"
        time.sleep(0.02)


def wait_for_balance(members: Sequence[GroupMember], partitions: int) -> None:
    """Until the members share the partitions evenly, each partition with one of them."""

    def balanced() -> bool:
        shares = [list(member.assignment) for member in members]
        return (
            sorted(p for share in shares for p in share) == list(range(partitions))
            and max(map(len, shares)) - min(map(len, shares)) <= 1
        )

    wait_for("unbalanced", balanced, lambda: [member.assignment for member in members])


def wait_for_records(members: Sequence[GroupMember], count: int) -> None:
    def received() -> int:
        return sum(len(member.records) for member in members)

    wait_for(f"fewer than {count} records", lambda: received() >= count, received)
