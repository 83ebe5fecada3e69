"""kafka-consumer-groups beside Apache Kafka's."""

import csv
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkapy.clients.admin import AdminClient, NewTopic
from kafkapy.clients.consumer import KafkaConsumer, OffsetAndMetadata
from kafkapy.clients.producer import KafkaProducer
from kafkapy.common.types import TopicPartition
from tests.compat.apache_tools import ApacheTools
from tests.compat.brokers import Broker
from tests.compat.outcome import Outcome, run_ours
from tests.tools.compare.conftest import Compare

_COMMAND = "kafka-consumer-groups"
_TIMESTAMP = 1_700_000_000_000  # 2023-11-14T22:13:20Z


class Groups:
    """Topics `x` and `y`, a group with members, and groups with only offsets."""

    def __init__(self, admin: AdminClient, bootstrap: str) -> None:
        self.prefix = f"groups-of-long-names-{uuid.uuid4().hex[:8]}"
        self.x, self.y = f"{self.prefix}-x", f"{self.prefix}-y"
        self.active, self.idle = f"{self.prefix}-active", f"{self.prefix}-idle"
        self._admin = admin
        admin.create_topics([NewTopic(self.x, 3), NewTopic(self.y, 1)])
        with KafkaProducer(bootstrap_servers=bootstrap) as producer:
            for i in range(20):
                timestamp_ms = _TIMESTAMP + 1000 * i
                producer.send(self.x, b"v", partition=i % 2, timestamp_ms=timestamp_ms)
                producer.send(self.y, b"v")
        self.reset(self.idle)

    def reset(self, group: str) -> None:
        offsets = {
            TopicPartition(self.x, 0): OffsetAndMetadata(3),
            TopicPartition(self.x, 1): OffsetAndMetadata(4),
            TopicPartition(self.y, 0): OffsetAndMetadata(5),
        }
        self._admin.alter_consumer_group_offsets(group, offsets)

    def fresh(self) -> str:
        group = f"{self.prefix}-{uuid.uuid4().hex[:8]}"
        self.reset(group)
        return group

    def offsets(self, group: str) -> dict[tuple[str, int], int]:
        committed = self._admin.list_consumer_group_offsets(group)
        return {
            (tp.topic.removeprefix(f"{self.prefix}-"), tp.partition): position.offset
            for tp, position in committed.items()
            if position is not None
        }


@pytest.fixture(scope="module")
def groups(broker: Broker) -> Iterator[Groups]:
    with AdminClient(bootstrap_servers=broker.bootstrap) as admin:
        made = Groups(admin, broker.bootstrap)
        settings = {"bootstrap_servers": broker.bootstrap, "group_id": made.active}
        with (
            KafkaConsumer(made.x, client_id="one", group_instance_id="i-1", **settings) as one,
            KafkaConsumer(made.x, client_id="two", **settings) as two,
        ):
            while len(one.assignment()) + len(two.assignment()) < 3 or not two.assignment():
                one.poll(50)
                two.poll(50)
            for consumer in (one, two):
                for partition in consumer.assignment():
                    consumer.position(partition)
                consumer.commit_sync()
            yield made


def _lines(stdout: str) -> list[str]:
    """Kafka's are in the order of a hash table, and blank ones come and go."""
    return sorted(line.rstrip() for line in stdout.splitlines() if line.strip())


def _rows(stdout: str) -> list[tuple[str, ...]]:
    """Kafka prints the table of new offsets on one line, after warnings on lines of their own."""
    table = "\n".join(line for line in stdout.splitlines() if not line.startswith("Warn:"))
    cells = table.split()
    return sorted(tuple(cells[i : i + 4]) for i in range(0, len(cells), 4))


def _csv_rows(stdout: str) -> list[list[str]]:
    """Kafka quotes long names, though nothing in them needs it."""
    return sorted(row for row in csv.reader(stdout.splitlines()) if row)


@pytest.fixture
def both(
    compare: Compare, broker: Broker, groups: Groups
) -> Callable[[str, Callable[[str], object]], Outcome]:
    """Runs both commands; X, Y, ACTIVE and IDLE stand for names."""

    def run(line: str, normalise: Callable[[str], object] = _lines) -> Outcome:
        words = _words(line, groups)
        where = ("--bootstrap-server", broker.bootstrap)
        return compare(_COMMAND, *where, *words, normalise=normalise)

    return run


def _words(line: str, groups: Groups) -> list[str]:
    names = {"X": groups.x, "Y": groups.y, "ACTIVE": groups.active, "IDLE": groups.idle}
    return [re.sub(r"\b(X|Y|ACTIVE|IDLE)\b", lambda m: names[m[0]], w) for w in line.split()]


Both = Callable[..., Outcome]


@pytest.mark.parametrize(
    "options", ["", "--state", "--state stable,Empty", "--type", "--type classic", "--state --type"]
)
def test_groups_are_listed(both: Both, groups: Groups, options: str) -> None:
    shown = both(f"--list {options}")

    assert groups.active in shown.stdout


@pytest.mark.parametrize(
    "line",
    [
        "--group ACTIVE",
        "--group IDLE",
        "--group IDLE --group ACTIVE --offsets --verbose",
        "--group ACTIVE --members",
        "--group IDLE --members --verbose",
        "--group ACTIVE --state",
        "--group IDLE --state --verbose",
        "--all-groups",
        "--all-groups --members",
        "--all-groups --state --timeout 9000",
    ],
)
def test_groups_are_described(both: Both, groups: Groups, line: str) -> None:
    shown = both(f"--describe {line}")

    assert shown.code == 0
    assert groups.prefix in shown.stdout or "--members" in line


def test_partitions_of_members_are_described_with_their_topics(
    apache: ApacheTools, broker: Broker, groups: Groups
) -> None:
    line = f"--bootstrap-server {broker.bootstrap} --describe --group ACTIVE --members --verbose"
    words = _words(line, groups)

    theirs = apache.run(_COMMAND, *words)
    ours = run_ours(_COMMAND, *words)

    # Kafka 3.9 lost the name of the topic here; those before and after it show it.
    assert _lines(ours.stdout.replace(f"{groups.x}(", "(")) == _lines(theirs.stdout)
    assert ours.stdout.count(f"{groups.x}(") == 2


@pytest.mark.parametrize(
    "line",
    [
        "--to-earliest --topic X",
        "--to-latest --all-topics",
        "--to-latest --topic X:0,1 --topic Y",
        "--to-offset 4 --topic X",
        "--to-offset 400 --topic X",
        "--shift-by -2 --topic X:0,1",
        "--shift-by -200 --topic X:0,1",
        "--shift-by 200 --all-topics",
        "--to-current --topic X",
        "--to-datetime 2023-11-14T22:13:25.000 --topic X",
        "--to-datetime 2023-11-14T22:13:25.001Z --topic X",
        "--to-datetime 2023-11-14T23:13:25.000+01:00 --topic X",
        "--by-duration P1D --topic X",
        "--by-duration PT1H30M --topic Y",
        "--by-duration=-PT1H --topic Y",
    ],
)
def test_new_offsets_are_shown(both: Both, groups: Groups, line: str) -> None:
    before = groups.offsets(groups.idle)

    shown = both(f"--reset-offsets --dry-run --group IDLE {line}", _rows)

    assert shown.code == 0
    assert groups.offsets(groups.idle) == before


@pytest.mark.parametrize("line", ["--group IDLE", "--group IDLE --group IDLE2"])
def test_new_offsets_are_exported(both: Both, groups: Groups, line: str) -> None:
    groups.reset(f"{groups.idle}2")
    line = line.replace("IDLE2", f"{groups.idle}2")

    both(f"--reset-offsets --dry-run --to-latest --all-topics --export {line}", _csv_rows)


def test_offsets_are_reset_as_shown(broker: Broker, groups: Groups) -> None:
    group = groups.fresh()
    where = ("--bootstrap-server", broker.bootstrap, "--group", group)

    done = run_ours(
        _COMMAND, *where, "--reset-offsets", "--execute", "--shift-by", "2", "--all-topics"
    )

    assert (done.code, done.stderr) == (0, "")
    assert groups.offsets(group) == {("x", 0): 5, ("x", 1): 6, ("y", 0): 7}


def test_offsets_are_reset_from_an_exported_file(
    apache: ApacheTools, broker: Broker, groups: Groups, tmp_path: Path
) -> None:
    where = ("--bootstrap-server", broker.bootstrap, "--reset-offsets")
    made, given = [groups.fresh(), groups.fresh()], tmp_path / "offsets.csv"
    both_groups = ("--group", made[0], "--group", made[1])
    exported = run_ours(
        _COMMAND, *where, *both_groups, "--dry-run", "--to-earliest", "--all-topics", "--export"
    )
    given.write_text(exported.stdout)

    run_ours(_COMMAND, *where, *both_groups, "--execute", "--from-file", str(given))

    assert set(groups.offsets(made[0]).values()) == {0}
    assert groups.offsets(made[0]) == groups.offsets(made[1])
    given.write_text(f"{groups.x},0,7\n{groups.x},2,9\n")
    one_group = (*where, "--group", made[1], "--execute", "--from-file", str(given))
    assert _rows(run_ours(_COMMAND, *one_group).stdout) == _rows(
        apache.run(_COMMAND, *one_group).stdout
    )
    assert groups.offsets(made[1]) == {("x", 0): 7, ("x", 1): 0, ("x", 2): 0, ("y", 0): 0}


def test_offsets_are_deleted(apache: ApacheTools, broker: Broker, groups: Groups) -> None:
    made = [groups.fresh(), groups.fresh()]
    where = ("--bootstrap-server", broker.bootstrap, "--delete-offsets", "--topic", groups.x)

    theirs = apache.run(_COMMAND, *where, "--group", made[0])
    ours = run_ours(_COMMAND, *where, "--group", made[1])

    assert (ours.code, theirs.code) == (0, 0)
    assert ours.stdout.split() == theirs.stdout.replace(made[0], made[1]).split()
    assert groups.offsets(made[1]) == {("y", 0): 5}


def test_groups_are_deleted(apache: ApacheTools, broker: Broker, groups: Groups) -> None:
    made = [groups.fresh(), groups.fresh()]
    where = ("--bootstrap-server", broker.bootstrap, "--delete", "--group")

    theirs = apache.run(_COMMAND, *where, made[0])
    ours = run_ours(_COMMAND, *where, made[1])

    assert (ours.code, ours.stderr) == (0, "")
    assert ours.stdout == theirs.stdout.replace(made[0], made[1])
    assert groups.offsets(made[1]) == {}


@pytest.mark.parametrize(
    "line",
    [
        "--describe --group none",
        "--describe --group none --members",
        "--describe --group none --state",
        "--delete --group none",
        "--delete --group ACTIVE",
        "--delete-offsets --group ACTIVE --topic X",
        "--delete-offsets --group none --topic X:0",
        "--delete-offsets --group IDLE --topic none",
        "--reset-offsets --dry-run --group ACTIVE --to-latest --all-topics",
        "--reset-offsets --dry-run --group IDLE --to-latest --topic none",
        "--reset-offsets --dry-run --group IDLE --to-offset x --topic X",
        "--reset-offsets --dry-run --group IDLE --to-datetime 2023-11-14 --topic X",
        "--reset-offsets --dry-run --group IDLE --by-duration 1h --topic X",
        "--reset-offsets --dry-run --group IDLE --from-file /nowhere",
        "--list --timeout -1",
        "--describe --group IDLE --timeout -1",
    ],
)
def test_what_cannot_be_done_is_one_line_and_exit_code_1(
    apache: ApacheTools, broker: Broker, groups: Groups, line: str
) -> None:
    words = ["--bootstrap-server", broker.bootstrap, *_words(line, groups)]

    theirs = apache.run(_COMMAND, *words)
    ours = run_ours(_COMMAND, *words)

    assert "Error: " in theirs.stdout
    assert (ours.code, len(ours.stderr.splitlines())) == (1, 1)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--list --describe",
        "--list --state nonsense",
        "--list --type nonsense",
        "--list --verbose",
        "--list --group IDLE",
        "--describe",
        "--describe --group IDLE --type",
        "--describe --group IDLE --members --state",
        "--describe --group IDLE --state stable",
        "--describe --group IDLE --all-groups",
        "--reset-offsets --group IDLE --to-latest --dry-run",
        "--reset-offsets --group IDLE --topic X --dry-run",
        "--reset-offsets --group IDLE --topic X --to-latest --to-earliest --dry-run",
        "--reset-offsets --group IDLE --topic X --to-latest --dry-run --execute",
        "--reset-offsets --topic X --to-latest --dry-run",
        "--reset-offsets --group IDLE --to-latest --topic X:a --dry-run",
        "--reset-offsets --group IDLE --shift-by 1 --topic X --dry-run",
        "--delete-offsets --group IDLE",
        "--delete-offsets --topic X",
        "--delete",
        "--delete --group IDLE --topic X",
    ],
)
def test_bad_use_is_one_line_and_ends_as_in_kafka(both: Both, line: str) -> None:
    ended = both(line)

    assert (ended.code, ended.stdout) == (1, "")
    assert len(ended.stderr.splitlines()) == 1


def test_what_can_be_deleted_is_although_something_else_cannot(
    broker: Broker, groups: Groups
) -> None:
    group = groups.fresh()

    done = run_ours(
        _COMMAND,
        *("--bootstrap-server", broker.bootstrap, "--delete", "--group", group, "--group", "none"),
    )

    assert done.code == 1
    assert done.lines == [f"These consumer groups were deleted successfully: '{group}'"]
    assert "'none'" in done.stderr


def test_without_execute_nothing_is_changed_and_that_is_said(
    broker: Broker, groups: Groups
) -> None:
    where = ("--bootstrap-server", broker.bootstrap, "--group", groups.idle)
    before = groups.offsets(groups.idle)

    done = run_ours(_COMMAND, *where, "--reset-offsets", "--to-latest", "--all-topics")

    assert "--execute" in done.stderr
    assert groups.offsets(groups.idle) == before
