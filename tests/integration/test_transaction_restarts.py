"""A broker that stops within a transaction leaves it committed or aborted, never half of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.describe_transactions import DescribeTransactionsRequest
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import SimpleRecord
from kafkapy.common.types import TRANSACTION_STATE_TOPIC, TopicPartition
from kafkapy.coordinator.transaction import transaction_log
from kafkapy.coordinator.transaction.transaction_metadata import TransactionMetadata
from kafkapy.coordinator.transaction.transaction_state import TransactionState
from kafkapy.storage.append_origin import AppendOrigin
from tests.helpers.api import create_topic
from tests.helpers.broker import Client, running_broker
from tests.helpers.server_process import running_server
from tests.helpers.transactions import (
    TransactionalProducer,
    committed,
    uncommitted,
    until_settled,
)
from tests.helpers.waiting import wait_until
from tests.unit.storage.harness import StorageHarness

S = TransactionState
NAME = "txn"
ONE_STATE_PARTITION = {"transaction.state.log.num.partitions": "1"}
PARTITIONS = 3
TIMESTAMP = 1_700_000_000_000


def write_all(producer: TransactionalProducer, topic: str, value: str) -> None:
    for partition in range(PARTITIONS):
        producer.write(topic, value, partition=partition)


def committed_everywhere(client: Client, topic: str) -> list[list[str]]:
    return [committed(client, topic, partition=p) for p in range(PARTITIONS)]


def uncommitted_everywhere(client: Client, topic: str) -> list[list[str]]:
    return [uncommitted(client, topic, partition=p) for p in range(PARTITIONS)]


def state_of(client: Client) -> str:
    """Once its coordinator has loaded it, which goes on in the background."""
    states: list[str] = []

    def describe() -> Errors:
        response = client.request(DescribeTransactionsRequest(transactional_ids=[NAME]))
        states.append(response.transaction_states[0].transaction_state)
        return Errors.for_code(response.transaction_states[0].error_code)

    assert until_settled(describe) is Errors.NONE
    return states[-1]


def decide(log_dir: Path, topic: str, producer: TransactionalProducer, state: S) -> None:
    """What a crash right after the decision leaves: its record, and no marker."""
    metadata = TransactionMetadata(
        NAME,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        txn_timeout_ms=60_000,
        state=S.ONGOING,
        topic_partitions={TopicPartition(topic, p) for p in range(PARTITIONS)},
        txn_start_timestamp=TIMESTAMP,
        txn_last_update_timestamp=TIMESTAMP,
    )
    transit = metadata.prepare_abort_or_commit(state, TIMESTAMP)
    log = StorageHarness(log_dir).open_log(name=f"{TRANSACTION_STATE_TOPIC}-0")
    log.append_as_leader(
        MemoryRecords.with_records(
            SimpleRecord(
                TIMESTAMP,
                transaction_log.key_to_bytes(NAME),
                transaction_log.value_to_bytes(transit),
            )
        ),
        0,
        origin=AppendOrigin.COORDINATOR,
    )
    log.flush()
    log.close()


def test_open_transaction_goes_on_after_a_restart(tmp_path: Path) -> None:
    with running_broker(tmp_path, ONE_STATE_PARTITION) as broker:
        with broker.client() as client:
            topic = create_topic(client, partitions=PARTITIONS)
            producer = TransactionalProducer(client, NAME).start()
            write_all(producer, topic, "a")

        broker.restart()

        with broker.client() as client:
            producer.use(client)
            # The coordinator may still be reading its log.
            wait_until(lambda: state_of(client) == "Ongoing")
            assert committed_everywhere(client, topic) == [[]] * PARTITIONS
            assert producer.send(topic, "b") is Errors.NONE
            assert until_settled(lambda: producer.end(commit=True)) is Errors.NONE
            wait_until(lambda: committed_everywhere(client, topic) == [["a", "b"], ["a"], ["a"]])


def test_open_transaction_of_a_lost_producer_is_aborted_by_its_successor(tmp_path: Path) -> None:
    with running_broker(tmp_path, ONE_STATE_PARTITION) as broker:
        with broker.client() as client:
            topic = create_topic(client, partitions=PARTITIONS)
            write_all(TransactionalProducer(client, NAME).start(), topic, "lost")

        broker.restart()

        with broker.client() as client:
            successor = TransactionalProducer(client, NAME).start()
            write_all(successor, topic, "kept")
            successor.commit()
            wait_until(lambda: committed_everywhere(client, topic) == [["kept"]] * PARTITIONS)
            assert uncommitted_everywhere(client, topic) == [["lost", "kept"]] * PARTITIONS


@pytest.mark.parametrize(
    ("state", "visible", "label"),
    [
        (S.PREPARE_COMMIT, ["a"], "CompleteCommit"),
        (S.PREPARE_ABORT, [], "CompleteAbort"),
    ],
)
def test_decision_is_carried_out_after_a_restart(
    tmp_path: Path, state: S, visible: list[str], label: str
) -> None:
    with running_broker(tmp_path, ONE_STATE_PARTITION) as broker:
        with broker.client() as client:
            topic = create_topic(client, partitions=PARTITIONS)
            producer = TransactionalProducer(client, NAME).start()
            write_all(producer, topic, "a")
        broker.stop()
        decide(tmp_path, topic, producer, state)

        broker.start()

        with broker.client() as client:
            wait_until(lambda: state_of(client) == label)
            assert committed_everywhere(client, topic) == [visible] * PARTITIONS
            successor = TransactionalProducer(client, NAME).start()
            assert successor.epoch == producer.epoch + 1


@pytest.mark.parametrize(("commit", "visible"), [(True, ["a"]), (False, [])])
def test_completed_transaction_stays_so(tmp_path: Path, commit: bool, visible: list[str]) -> None:
    with running_broker(tmp_path, ONE_STATE_PARTITION) as broker:
        with broker.client() as client:
            topic = create_topic(client, partitions=PARTITIONS)
            producer = TransactionalProducer(client, NAME).start()
            write_all(producer, topic, "a")
            assert producer.end(commit=commit) is Errors.NONE
            wait_until(lambda: state_of(client).startswith("Complete"))

        broker.restart()

        with broker.client() as client:
            assert committed_everywhere(client, topic) == [visible] * PARTITIONS
            producer.use(client)
            assert producer.end(commit=commit) is Errors.NONE


# What producers had done when the broker was killed, and what may then be seen of it.
STEPS: dict[str, tuple[Callable[[TransactionalProducer, str], None], list[list[str]]]] = {
    "initialised": (lambda producer, topic: None, [[]]),
    "added": (lambda producer, topic: _added(producer, topic), [[]]),
    "written": (lambda producer, topic: write_all(producer, topic, "a"), [[]]),
    "committed": (lambda producer, topic: _ended(producer, topic, commit=True), [["a"]]),
    "aborted": (lambda producer, topic: _ended(producer, topic, commit=False), [[]]),
    "committing": (lambda producer, topic: write_all(producer, topic, "a"), [["a"], []]),
    "aborting": (lambda producer, topic: write_all(producer, topic, "a"), [[]]),
}


def _added(producer: TransactionalProducer, topic: str) -> None:
    assert until_settled(lambda: producer.add(topic, *range(PARTITIONS))) is Errors.NONE


def _ended(producer: TransactionalProducer, topic: str, *, commit: bool) -> None:
    write_all(producer, topic, "a")
    assert producer.end(commit=commit) is Errors.NONE


def test_sigkill_leaves_a_transaction_whole_or_not_at_all(tmp_path: Path) -> None:
    logs, output = tmp_path / "logs", tmp_path / "output.txt"
    topics = {}
    with running_server(logs, output, ONE_STATE_PARTITION) as server, ExitStack() as clients:
        producers = {}
        for step, (act, _) in STEPS.items():
            client = clients.enter_context(server.client())
            topics[step] = create_topic(client, partitions=PARTITIONS)
            producers[step] = TransactionalProducer(client, step).start()
            act(producers[step], topics[step])
        # These requests are on their way: whether they arrive is open.
        producers["committing"].send_end(commit=True)
        producers["aborting"].send_end(commit=False)
        server.kill()

    with running_server(logs, output, ONE_STATE_PARTITION) as server, server.client() as client:
        for step, (_, allowed) in STEPS.items():
            topic = topics[step]
            successor = TransactionalProducer(client, step).start()
            write_all(successor, topic, "next")
            successor.commit()
            wait_until(
                lambda topic=topic: all(
                    values[-1:] == ["next"] for values in committed_everywhere(client, topic)
                )
            )

            first, *others = committed_everywhere(client, topic)

            assert others == [first] * (PARTITIONS - 1), step
            assert first[:-1] in allowed, step
