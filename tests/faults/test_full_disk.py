"""A disk that is really full, and system calls that are really interrupted."""

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.create_topics import CreateTopicsRequest
from tests.faults.faulty_broker import (
    log_dir_errors,
    partition_dirs,
    read_all,
    wait_for_leaders,
)
from tests.faults.small_disk import SmallDisk, small_disk
from tests.helpers.api import creatable, create_topic, fetch, produce, produced
from tests.helpers.broker import Broker, Client, running_broker
from tests.helpers.records import records
from tests.helpers.server_process import ServerProcess, running_server
from tests.helpers.waiting import wait_until

STORAGE_ERROR = Errors.KAFKA_STORAGE_ERROR.code
_ROUNDS = 10
FIRST_KIB = 2000
_GROWTH_KIB = 400


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "small", FIRST_KIB) as disk:
        yield disk


def _fill(client: Client, topic: str, partition: int, first: int = 0) -> list[bytes]:
    """Produces until it is refused; the values that were acknowledged."""
    acked: list[bytes] = []
    while True:
        value = b"%d " % (first + len(acked)) * 2000
        result = produce(client, topic, records(value), partition=partition)
        if result.error_code != Errors.NONE.code:
            assert result.error_code == STORAGE_ERROR
            return acked
        assert result.base_offset == first + len(acked)
        acked.append(value)


def _partition_in(log_dirs: list[Path], topic: str, log_dir: Path) -> int:
    where = partition_dirs(log_dirs, topic)
    return next(partition for partition, path in where.items() if path == log_dir)


def _check_small_disk_is_lost(broker: Broker, topic: str, partition: int, other: int) -> None:
    with broker.client() as client:
        wait_until(lambda: STORAGE_ERROR in log_dir_errors(client).values())
        assert produce(client, topic, records("x"), partition=partition).error_code == STORAGE_ERROR
        assert fetch(client, topic, partition=partition).error_code == STORAGE_ERROR
        produced(client, topic, records("well"), partition=other)


def survive_full_disk(large: Path, disk: SmallDisk, rounds: int) -> int:
    """Fills the disk so many times, each time with a little more room; the records acknowledged."""
    log_dirs = [large, disk.path]
    acked: list[bytes] = []
    with running_broker(large, {"log.dirs": ",".join(map(str, log_dirs))}) as broker:
        with broker.client() as client:
            topic = create_topic(client, partitions=2)
        full = _partition_in(log_dirs, topic, disk.path)
        for round_number in range(rounds):
            with broker.client() as client:
                wait_for_leaders(client, topic)
                new = _fill(client, topic, full, len(acked))
            acked += new
            assert new, "no room in the first place"
            _check_small_disk_is_lost(broker, topic, full, 1 - full)
            disk.resize(FIRST_KIB + (round_number + 1) * _GROWTH_KIB)
            broker.restart()
            with broker.client() as client:
                wait_for_leaders(client, topic)
                assert read_all(client, topic, full) == acked
                assert len(read_all(client, topic, 1 - full)) == round_number + 1
    return len(acked)


def test_full_disk_is_an_offline_directory_and_all_is_there_when_it_has_room(
    tmp_path: Path, disk: SmallDisk
) -> None:
    acked = survive_full_disk(tmp_path / "large", disk, _ROUNDS)

    assert acked >= _ROUNDS


def test_full_first_directory_with_the_metadata_store_leaves_the_other_one_working(
    tmp_path: Path, disk: SmallDisk
) -> None:
    log_dirs = [disk.path, tmp_path / "large"]
    with running_broker(log_dirs[0], {"log.dirs": ",".join(map(str, log_dirs))}) as broker:
        with broker.client() as client:
            topic = create_topic(client, partitions=2)
            full = _partition_in(log_dirs, topic, disk.path)
            acked = _fill(client, topic, full)
            _fill_up_the_rest(disk.path)
            refused = client.request(
                CreateTopicsRequest(topics=[creatable("new", partitions=50)], timeout_ms=5000)
            )
        _check_small_disk_is_lost(broker, topic, full, 1 - full)
        (disk.path / "filler").unlink()
        disk.resize(4000)
        broker.restart()
        with broker.client() as client:
            wait_for_leaders(client, topic)
            found = read_all(client, topic, full)
            well = read_all(client, topic, 1 - full)

    assert refused.topics[0].error_code == STORAGE_ERROR
    assert found == acked
    assert well == [b"well"]


def _fill_up_the_rest(directory: Path) -> None:
    with (directory / "filler").open("wb", buffering=0) as filler:
        for size in (4096, 1):
            try:
                while True:
                    filler.write(bytes(size))
            except OSError:
                continue


def test_broker_whose_only_disk_is_full_ends_with_a_clear_message(
    tmp_path: Path, disk: SmallDisk
) -> None:
    with running_server(disk.path, tmp_path / "output") as server:
        with server.client() as client:
            topic = create_topic(client)
            acked = _fill(client, topic, 0)
        code = server.wait()
    disk.resize(4000)
    with running_server(disk.path, tmp_path / "output") as again, again.client() as client:
        wait_for_leaders(client, topic)
        found = read_all(client, topic)

    assert code == 1
    assert "\nAll directories of log.dirs have failed\n" in server.output()
    assert "No space left on device" in server.output()
    assert found == acked


def test_broker_on_a_disk_that_is_full_already_does_not_start(
    tmp_path: Path, disk: SmallDisk
) -> None:
    _fill_up_the_rest(disk.path)

    with pytest.raises(AssertionError, match="did not start") as caught:
        ServerProcess(disk.path, tmp_path / "output")

    assert "log.dirs" in str(caught.value)
    assert "Traceback" not in str(caught.value)


@pytest.mark.parametrize(
    "injection",
    [
        "pwrite64:error=EINTR:when=2+3",
        "sendfile:error=EINTR:when=1+2",
        "sendto:error=EINTR:when=2+3",
        "recvfrom:error=EINTR:when=2+3",
    ],
)
def test_interrupted_system_calls_are_made_again(tmp_path: Path, injection: str) -> None:
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("strace is not installed")
    call = injection.partition(":")[0]
    wrapper = [strace, "-f", "-qq", "--seccomp-bpf", "-o", str(tmp_path / "calls")]
    wrapper += ["-e", f"trace={call}", "-e", f"inject={injection}"]
    values = [b"%d" % i * 50 for i in range(20)]

    try:
        server = ServerProcess(tmp_path / "logs", tmp_path / "output", wrapper=wrapper)
    except AssertionError as e:
        if "ptrace" in str(e):
            pytest.skip("processes cannot be traced here")
        raise
    try:
        with server.client() as client:
            topic = create_topic(client)
            for value in values:
                produced(client, topic, records(value))
            found = [fetch(client, topic, offset).error_code for offset in range(20)]
            stored = read_all(client, topic)
        os.kill(int((tmp_path / "logs" / "kafkapy-server.pid").read_text()), signal.SIGTERM)
        code = server.wait()
    finally:
        server.kill()

    assert "INJECTED" in (tmp_path / "calls").read_text()
    assert code == 0
    assert found == [Errors.NONE.code] * 20
    assert stored == values
