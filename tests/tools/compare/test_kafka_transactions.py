"""kafka-transactions beside Apache Kafka's."""

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from kafkapy.clients.admin import AdminClient, NewTopic
from kafkapy.clients.producer import KafkaProducer
from tests.compat.brokers import Broker
from tests.compat.outcome import run_ours
from tests.helpers.ended_transactions import await_ended_transactions
from tests.tools.compare.conftest import Compare

_COMMAND = "kafka-transactions"


@dataclass(frozen=True, slots=True)
class Transactions:
    """A topic in which one transaction is open and one is committed."""

    topic: str
    opened: str
    committed: str


@pytest.fixture(scope="module")
def transactions(broker: Broker) -> Iterator[Transactions]:
    prefix = f"txn-{uuid.uuid4().hex[:8]}"
    made = Transactions(prefix, f"{prefix}-opened", f"{prefix}-committed")
    where = {"bootstrap_servers": broker.bootstrap}
    with AdminClient(**where) as admin:
        admin.create_topics([NewTopic(made.topic, 1)])
    with (
        KafkaProducer(transactional_id=made.committed, **where) as committed,
        KafkaProducer(transactional_id=made.opened, **where) as opened,
    ):
        for producer in (committed, opened):
            producer.init_transactions()
            producer.begin_transaction()
            producer.send(made.topic, b"v").get(10)
        committed.commit_transaction()
        await_ended_transactions(broker.bootstrap)
        yield made
        opened.abort_transaction()


def test_transactions_are_listed(
    compare: Compare, broker: Broker, transactions: Transactions
) -> None:
    where = ("--bootstrap-server", broker.bootstrap)

    shown = compare(_COMMAND, *where, "list", normalise=lambda text: sorted(text.splitlines()))
    none_so_long = compare(_COMMAND, *where, "list", "--duration-filter", "100000000")

    assert any(transactions.opened in line and "Ongoing" in line for line in shown.lines)
    assert len(none_so_long.lines) == 1


def test_a_transaction_is_described(
    compare: Compare, broker: Broker, transactions: Transactions
) -> None:
    for transactional_id in (transactions.opened, transactions.committed):
        shown = compare(
            _COMMAND,
            *("--bootstrap-server", broker.bootstrap),
            *("describe", "--transactional-id", transactional_id),
            normalise=_without_duration,
        )

        assert transactional_id in shown.lines[1]


def _without_duration(stdout: str) -> list[list[str]]:
    rows = [line.split("\t") for line in stdout.splitlines()]
    column = rows[0].index("TransactionDurationMs")
    assert rows[1][column].strip().isdigit()
    return [row[:column] + row[column + 1 :] for row in rows]


@pytest.mark.parametrize("options", [(), ("--broker-id", "0")])
def test_producers_of_a_partition_are_described(
    compare: Compare, broker: Broker, transactions: Transactions, options: tuple[str, ...]
) -> None:
    partition = ("--topic", transactions.topic, "--partition", "0")

    shown = compare(
        _COMMAND,
        *("--bootstrap-server", broker.bootstrap, "describe-producers", *partition, *options),
        normalise=lambda text: sorted(text.splitlines()),
    )

    assert len(shown.lines) == 3


@pytest.mark.parametrize(
    "line",
    ["--broker-id 0", "--topic TOPIC", "--topic TOPIC --partition 0 --max-transaction-timeout -1"],
)
def test_a_transaction_that_its_coordinator_knows_does_not_hang(
    compare: Compare, broker: Broker, transactions: Transactions, line: str
) -> None:
    words = line.replace("TOPIC", transactions.topic).split()

    shown = compare(_COMMAND, "--bootstrap-server", broker.bootstrap, "find-hanging", *words)

    assert len(shown.lines) == 1


def test_an_open_transaction_is_aborted(broker: Broker) -> None:
    name = f"txn-{uuid.uuid4().hex[:8]}"
    where = ("--bootstrap-server", broker.bootstrap)
    partition = ("--topic", name, "--partition", "0")
    with AdminClient(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(name, 1)])
    with KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=name) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(name, b"v").get(10)

        done = run_ours(_COMMAND, *where, "abort", *partition, "--start-offset", "0")
        shown = run_ours(_COMMAND, *where, "describe-producers", *partition)
        producer.abort_transaction()

    assert (done.code, done.stdout, done.stderr) == (0, "", "")
    assert shown.lines[1].split()[-1] == "None"


@pytest.mark.parametrize(
    "line",
    [
        "",
        "nonsense",
        "describe",
        "describe --transactional-id none",
        "describe-producers --topic TOPIC",
        "find-hanging",
        "find-hanging --broker-id 0 --partition 0",
        "abort --topic TOPIC --partition 0",
        "abort --topic TOPIC --partition 0 --start-offset 77",
        "abort --topic TOPIC --partition 0 --producer-id 5",
        "abort --topic TOPIC --partition 0 --producer-id 5 --producer-epoch 1",
        "list --duration-filter x",
    ],
)
def test_bad_use_is_one_line_and_ends_as_in_kafka(
    compare: Compare, broker: Broker, transactions: Transactions, line: str
) -> None:
    words = line.replace("TOPIC", transactions.topic).split()

    ended = compare(_COMMAND, "--bootstrap-server", broker.bootstrap, *words)

    assert (ended.code, ended.stdout) == (1, "")
    assert len(ended.stderr.splitlines()) == 1
