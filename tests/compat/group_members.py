"""Members of consumer groups under test, in programs of the language their client is in."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.compat.tools import java_command, node_command

_ROOT = Path(__file__).resolve().parents[2]
_TIMEOUT_S = 30


def _command(client: str, bootstrap: str) -> tuple[list[str], dict[str, str] | None]:
    """Skips the test if the client is not there."""
    if client == "java":
        return java_command("GroupConsumer", bootstrap), None
    if client == "kafkajs":
        command, environment = node_command("group_consumer.js")
        return [*command, bootstrap], environment
    return [sys.executable, "-m", "tests.compat.group_consumer", client, bootstrap], None


class GroupMember:
    """What one member has reported so far. Read by the test's thread, written by its program's."""

    def __init__(self, name: str, tell: Callable[[str], None]) -> None:
        self._name = name
        self._tell = tell
        self._left = threading.Event()
        self.assignment: list[int] = []
        self.records: list[tuple[int, int]] = []

    def heard(self, kind: str, rest: str) -> None:
        match kind:
            case "A":
                self.assignment = [int(p) for p in rest.split(",") if p]
            case "R":
                partition, offset = rest.split()
                self.records.append((int(partition), int(offset)))
            case "L":
                self._left.set()

    def ask_to_leave(self) -> None:
        self._tell(f"leave {self._name}")

    def await_leaving(self) -> None:
        assert self._left.wait(_TIMEOUT_S), "the member did not leave"
        self.assignment = []


def leave(*members: GroupMember) -> None:
    """Ends them cleanly: they commit and leave their groups."""
    for member in members:
        member.ask_to_leave()
    for member in members:
        member.await_leaving()


class MemberProgram:
    """A process with members of one kind of client. For one thread."""

    def __init__(self, client: str, bootstrap: str) -> None:
        command, environment = _command(client, bootstrap)
        self._members: dict[str, GroupMember] = {}
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

    def join(self, topic: str, group: str, assignor: str) -> GroupMember:
        name = str(len(self._members))
        self._members[name] = member = GroupMember(name, self._tell)
        self._tell(f"join {name} {topic} {group} {assignor}")
        return member

    def _tell(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            name, kind, *rest = line.split()
            self._members[name].heard(kind, " ".join(rest))

    def close(self) -> None:
        """All members leave, and the program ends without an error."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            code = None
        self.kill()
        assert code == 0, f"the members ended with {code}"

    def kill(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


@contextmanager
def member_program(client: str, bootstrap: str) -> Iterator[MemberProgram]:
    """Ends cleanly with the block; after an error it is only killed."""
    program = MemberProgram(client, bootstrap)
    try:
        yield program
        program.close()
    finally:
        program.kill()


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
