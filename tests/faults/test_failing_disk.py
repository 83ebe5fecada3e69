"""Failing disks seen by a client: an error and an offline directory, never a wrong answer."""

import errno
import os
import random
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkapy.common.errors import Errors
from tests.faults.faulty_broker import (
    FaultyBroker,
    log_dir_errors,
    partition_dirs,
    read_all,
    wait_for_leaders,
)
from tests.helpers.api import create_topic, fetch, list_offset, produce, produced
from tests.helpers.broker import Client
from tests.helpers.crashing_fs import CrashingFileSystem
from tests.helpers.records import records
from tests.helpers.waiting import wait_until

STORAGE_ERROR = Errors.KAFKA_STORAGE_ERROR.code
_NTH = range(1, 21)


@dataclass(frozen=True, slots=True)
class _Failure:
    """What happens in one of the directories."""

    operation: str
    nth: int
    error: int
    written: int = 0

    @property
    def directory(self) -> str:
        return f"{self.operation}-{errno.errorcode[self.error]}-{self.nth}"


_FAILURES = [
    *(_Failure("write", nth, errno.EIO) for nth in _NTH),
    *(_Failure("write", nth, errno.ENOSPC, written=nth * 3) for nth in _NTH),
    *(_Failure("fsync", nth, errno.EIO) for nth in _NTH),
]


@pytest.fixture
def file_system() -> CrashingFileSystem:
    return CrashingFileSystem()


@pytest.fixture
def work_dir(tmp_path: Path) -> Iterator[Path]:
    """In memory where there is such a place: what is durable here is the faulty disk's affair."""
    in_memory = Path("/dev/shm")
    if not os.access(in_memory, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(prefix="kafkapy-", dir=in_memory) as directory:
        yield Path(directory)


@pytest.fixture
def two_dirs(work_dir: Path) -> list[Path]:
    return [work_dir / "a", work_dir / "b"]


@pytest.fixture
def broker(two_dirs: list[Path], file_system: CrashingFileSystem) -> Iterator[FaultyBroker]:
    broker = FaultyBroker(two_dirs, file_system)
    broker.start()
    try:
        yield broker
    finally:
        broker.stop()


def _topic_over_two_dirs(client: Client, two_dirs: list[Path]) -> tuple[str, int, int]:
    """A topic, its partition in the second directory, which is to fail, and its other one."""
    topic = create_topic(client, partitions=2)
    where = {log_dir: partition for partition, log_dir in partition_dirs(two_dirs, topic).items()}
    return topic, where[two_dirs[1]], where[two_dirs[0]]


def _fail_second_directory(
    client: Client, two_dirs: list[Path], file_system: CrashingFileSystem
) -> tuple[str, int]:
    """A topic and its partition in that directory, where a write has failed."""
    topic, failing, _ = _topic_over_two_dirs(client, two_dirs)
    file_system.fail("write", path_contains=f"{two_dirs[1]}/", sticky=True)
    produce(client, topic, records("a"), partition=failing)
    return topic, failing


def test_nth_failing_operation_is_an_error_and_what_was_acked_is_there_afterwards(
    work_dir: Path, file_system: CrashingFileSystem
) -> None:
    healthy = work_dir / "healthy"
    log_dirs = [healthy, *(work_dir / failure.directory for failure in _FAILURES)]
    broker = FaultyBroker(log_dirs, file_system, {"log.flush.interval.messages": "1"})
    broker.start()
    try:
        with broker.client() as client:
            topic = create_topic(client, partitions=len(log_dirs))
            where = partition_dirs(log_dirs, topic)
            of_dir = {log_dir.name: partition for partition, log_dir in where.items()}
            for failure in _FAILURES:
                file_system.fail(
                    failure.operation,
                    nth=failure.nth,
                    error=failure.error,
                    path_contains=f"{topic}-{of_dir[failure.directory]}/{0:020}.log",
                    write_before_failing=failure.written,
                )
            acked: dict[int, list[bytes]] = {partition: [] for partition in where}
            for failure in _FAILURES:
                partition = of_dir[failure.directory]
                code = Errors.NONE.code
                while code == Errors.NONE.code:
                    value = b"%d of %d" % (len(acked[partition]), partition)
                    result = produce(client, topic, records(value), partition=partition)
                    code = result.error_code
                    if code == Errors.NONE.code:
                        assert result.base_offset == len(acked[partition])
                        acked[partition].append(value)
                assert code == STORAGE_ERROR, failure
                assert len(acked[partition]) == failure.nth - 1, failure
                assert fetch(client, topic, partition=partition).error_code == STORAGE_ERROR
                again = produce(client, topic, records("again"), partition=partition)
                assert again.error_code == STORAGE_ERROR
                produced(client, topic, records("well"), partition=of_dir["healthy"])
                acked[of_dir["healthy"]].append(b"well")
            wait_until(lambda: broker.offline_log_dirs() == len(_FAILURES))
            errors = log_dir_errors(client)
        assert errors.pop(str(healthy)) == Errors.NONE.code
        assert set(errors.values()) == {STORAGE_ERROR}
        assert broker.fatal_errors == []

        file_system.heal()
        broker.restart()
        with broker.client() as client:
            wait_for_leaders(client, topic)
            found = {partition: read_all(client, topic, partition) for partition in acked}
            for failure in _FAILURES:
                produced(client, topic, records("new"), partition=of_dir[failure.directory])
    finally:
        broker.stop()

    for failure in _FAILURES:
        partition = of_dir[failure.directory]
        # A batch whose sync failed is whole, though nobody was told so.
        assert len(found[partition]) <= failure.nth - (failure.operation == "write"), failure
    assert {p: found[p][: len(values)] for p, values in acked.items()} == acked
    assert broker.fatal_errors == []


@pytest.mark.parametrize("request_kind", ["fetch", "list offsets"])
def test_partition_in_a_failed_directory_is_answered_at_once(
    broker: FaultyBroker, two_dirs: list[Path], file_system: CrashingFileSystem, request_kind: str
) -> None:
    with broker.client() as client, broker.client() as waiting:
        topic, failing, other = _topic_over_two_dirs(client, two_dirs)
        produced(client, topic, records("a"), partition=failing)
        answers: list[int] = []
        long_poll = threading.Thread(
            target=lambda: answers.append(
                fetch(
                    waiting, topic, 1, partition=failing, max_wait_ms=60_000, min_bytes=10**6
                ).error_code
            )
        )
        long_poll.start()
        wait_until(lambda: broker.waiting_fetches() == 1)
        file_system.fail("write", path_contains=f"{two_dirs[1]}/", sticky=True)

        refused = produce(client, topic, records("b"), partition=failing)
        # It is answered when the directory's partitions have been taken out of service.
        long_poll.join(10)
        if request_kind == "fetch":
            later = fetch(client, topic, partition=failing, max_wait_ms=60_000).error_code
        else:
            later = list_offset(client, topic, -1, partition=failing).error_code

        assert refused.error_code == STORAGE_ERROR
        assert answers == [STORAGE_ERROR]
        assert later == STORAGE_ERROR
        assert produced(client, topic, records("c"), partition=other) == 0


@pytest.mark.parametrize("nth", range(1, 6))
def test_old_client_that_waits_is_answered_whichever_read_fails(
    broker: FaultyBroker, file_system: CrashingFileSystem, nth: int
) -> None:
    with broker.client() as client, broker.client() as waiting, broker.client() as other:
        topic = create_topic(client)
        answers: dict[Client, int] = {}
        long_polls = [
            threading.Thread(
                target=lambda client=client, version=version: answers.update(
                    {client: fetch(client, topic, version=version, max_wait_ms=60_000).error_code}
                )
            )
            for client, version in ((waiting, 3), (other, 12))
        ]
        for number, long_poll in enumerate(long_polls, 1):
            long_poll.start()
            wait_until(lambda number=number: broker.waiting_fetches() == number)
        # Records are converted for the old client after they have been found.
        file_system.fail("read", nth=nth, path_contains=f"{topic}-0/{0:020}.log")

        produce(client, topic, records("a"))
        for long_poll in long_polls:
            long_poll.join(10)

        assert answers.keys() == {waiting, other}
        assert answers[waiting] in (Errors.NONE.code, Errors.NOT_LEADER_OR_FOLLOWER.code)
        assert answers[other] in (Errors.NONE.code, STORAGE_ERROR)


def test_failed_directory_is_told_to_old_clients_in_a_way_they_know(
    broker: FaultyBroker, two_dirs: list[Path], file_system: CrashingFileSystem
) -> None:
    with broker.client() as client:
        topic, failing = _fail_second_directory(client, two_dirs, file_system)

        codes = [
            fetch(client, topic, partition=failing, version=version).error_code
            for version in range(13)
        ]

    assert codes == [Errors.NOT_LEADER_OR_FOLLOWER.code] * 6 + [STORAGE_ERROR] * 7


def test_new_topics_go_to_the_directory_that_is_left(
    broker: FaultyBroker, two_dirs: list[Path], file_system: CrashingFileSystem
) -> None:
    with broker.client() as client:
        _fail_second_directory(client, two_dirs, file_system)
        wait_until(lambda: broker.offline_log_dirs() == 1)

        new_topic = create_topic(client, partitions=2)
        offsets = [produced(client, new_topic, records("a"), partition=p) for p in range(2)]

    assert offsets == [0, 0]
    assert set(partition_dirs(two_dirs, new_topic).values()) == {two_dirs[0]}


def test_directory_that_fails_while_a_segment_is_rolled_goes_offline(
    broker: FaultyBroker, two_dirs: list[Path], file_system: CrashingFileSystem
) -> None:
    with broker.client() as client:
        topic = create_topic(client, partitions=2, configs={"segment.bytes": "2000"})
        failing = next(p for p, d in partition_dirs(two_dirs, topic).items() if d == two_dirs[1])
        file_system.fail("open", path_contains=f"{two_dirs[1]}/", error=errno.EMFILE)
        codes = [
            produce(client, topic, records(b"x" * 300), partition=failing).error_code
            for _ in range(10)
        ]
        acked = codes.index(STORAGE_ERROR)
        file_system.heal()
        broker.restart()
    with broker.client() as client:
        wait_for_leaders(client, topic)
        found = read_all(client, topic, failing)

    assert codes == [Errors.NONE.code] * acked + [STORAGE_ERROR] * (10 - acked)
    assert found == [b"x" * 300] * acked


@pytest.mark.parametrize("limit", [1, 61, 1000])
def test_short_writes_store_whole_batches(
    broker: FaultyBroker, file_system: CrashingFileSystem, limit: int
) -> None:
    with broker.client() as client:
        topic = create_topic(client)
        file_system.max_bytes_per_write = limit
        values = [b"%d" % i * 300 for i in range(5)]
        for value in values:
            produced(client, topic, records(value))

        assert read_all(client, topic) == values


def test_broker_is_told_to_stop_when_the_last_directory_fails(
    broker: FaultyBroker, two_dirs: list[Path], file_system: CrashingFileSystem
) -> None:
    with broker.client() as client:
        topic = create_topic(client, partitions=2)
        file_system.fail("write", path_contains=topic, sticky=True)
        codes = [produce(client, topic, records("a"), partition=p).error_code for p in range(2)]

    wait_until(lambda: broker.fatal_errors)
    assert codes == [STORAGE_ERROR, STORAGE_ERROR]
    assert "log.dirs" in broker.fatal_errors[0]


def _lose_power(broker: FaultyBroker, rng: random.Random) -> None:
    broker.file_system.crash(rng)
    broker.stop()
    broker.start()


def test_power_loss_takes_nothing_acked_when_every_record_is_flushed(
    two_dirs: list[Path], file_system: CrashingFileSystem
) -> None:
    rng = random.Random(7)
    broker = FaultyBroker(two_dirs, file_system, {"log.flush.interval.messages": "1"})
    broker.start()
    acked: list[list[bytes]] = [[], []]
    try:
        with broker.client() as client:
            topic = create_topic(client, partitions=2, configs={"segment.bytes": "3000"})
        for _ in range(5):
            with broker.client() as client:
                wait_for_leaders(client, topic)
                for i in range(40):
                    value = rng.randbytes(rng.randrange(1, 200))
                    produced(client, topic, records(value), partition=i % 2)
                    acked[i % 2].append(value)
            _lose_power(broker, rng)
        with broker.client() as client:
            wait_for_leaders(client, topic)
            found = [read_all(client, topic, partition) for partition in range(2)]
    finally:
        broker.stop()

    assert found == acked


def test_power_loss_without_flushes_leaves_no_gap_and_no_half_batch(
    broker: FaultyBroker, file_system: CrashingFileSystem
) -> None:
    rng = random.Random(8)
    sent: list[bytes] = []
    with broker.client() as client:
        topic = create_topic(client, configs={"segment.bytes": "3000"})
    for _ in range(5):
        with broker.client() as client:
            for _ in range(40):
                value = rng.randbytes(rng.randrange(1, 200))
                produced(client, topic, records(value))
                sent.append(value)
        _lose_power(broker, rng)
        with broker.client() as client:
            wait_for_leaders(client, topic)
            found = read_all(client, topic)
        assert found == sent[: len(found)]
        sent = sent[: len(found)]
