"""Which requests a fault strikes, and how a test says so."""

import errno
import os
from pathlib import Path

import pytest

from kafkapy.common.errors import Errors
from kafkapy.testing.fault_plan import FaultPlan
from kafkapy.testing.faults import Faults, RequestFaultBuilder
from kafkapy.testing.faulty_file_system import FaultyFileSystem
from kafkapy.testing.recorded_request import RecordedRequest


def request(api: str = "Produce", topic: str = "x", client_id: str = "me") -> RecordedRequest:
    return RecordedRequest(
        time_ms=0,
        client_id=client_id,
        connection_id="",
        api=api,
        version=0,
        body=None,
        size_in_bytes=0,
        topics=frozenset({topic}),
        groups=frozenset(),
    )


@pytest.fixture
def disk() -> FaultyFileSystem:
    return FaultyFileSystem(sync=False)


@pytest.fixture
def plan(disk: FaultyFileSystem) -> FaultPlan:
    return FaultPlan(disk)


@pytest.fixture
def faults(plan: FaultPlan) -> Faults:
    return Faults(plan)


@pytest.mark.parametrize(
    ("say", "struck"),
    [
        (lambda on: on, [1]),
        (lambda on: on.nth(3), [3]),
        (lambda on: on.times(2), [1, 2]),
        (lambda on: on.nth(2).times(2), [2, 3]),
        (lambda on: on.times(2).nth(2), [2, 3]),
        (lambda on: on.always(), [1, 2, 3, 4, 5]),
        (lambda on: on.always().nth(4), [4, 5]),
    ],
)
def test_a_fault_strikes_when_its_turn_comes(plan, faults, say, struck) -> None:
    fault = say(faults.on("Produce")).disconnect()

    found = [number for number in range(1, 6) if plan.strike(request()) is not None]

    assert found == struck
    assert fault.fired == len(struck)


def test_only_what_matches_is_counted(plan: FaultPlan, faults: Faults) -> None:
    only = faults.on("Produce", topic="x", client_id="me").when(lambda r: r.version == 0)
    only.nth(2).error("NOT_LEADER_OR_FOLLOWER")
    others = [request("Fetch"), request(topic="y"), request(client_id="you")]

    assert [plan.strike(other) for other in [request(), *others]] == [None] * 4
    struck = plan.strike(request())
    assert struck is not None
    assert struck.error is Errors.NOT_LEADER_OR_FOLLOWER


def test_the_fault_that_was_put_in_first_goes_first(plan: FaultPlan, faults: Faults) -> None:
    first, second = faults.on("Produce").disconnect(), faults.on("Produce").drop_response()

    plan.strike(request())

    assert (first.fired, second.fired) == (1, 0)


def test_a_predicate_is_not_asked_once_the_fault_is_over(plan: FaultPlan, faults: Faults) -> None:
    asked = []
    faults.on("Produce").when(lambda r: asked.append(r) is None).disconnect()

    for _ in range(3):
        plan.strike(request())

    assert len(asked) == 1


def test_faults_that_never_struck_are_named(plan: FaultPlan, faults: Faults) -> None:
    faults.on("Produce").disconnect()
    faults.on("OffsetCommit", topic="t").nth(2).times(3).error("REBALANCE_IN_PROGRESS")
    faults.storage(topic="t").fsync_error()
    plan.strike(request())

    with pytest.raises(AssertionError) as failure:
        faults.assert_all_fired()

    assert str(failure.value) == (
        "faults that never struck: OffsetCommit topic t: error REBALANCE_IN_PROGRESS, 3 times from "
        "the 2th on; fsync of topic t: EIO, 1 time"
    )
    faults.clear()
    faults.assert_all_fired()


@pytest.mark.parametrize(
    ("say", "message"),
    [
        (lambda f: f.on("produce"), "no API 'produce'"),
        (lambda f: f.on("Produce").error("NONE"), "NONE is no error"),
        (lambda f: f.on("Produce").when(True), "a function of the request, not True"),
        (lambda f: f.on("Produce").error("NO_SUCH"), "no error 'NO_SUCH'"),
        (lambda f: f.on("Produce").nth(0), "counted from 1, not 0"),
        (lambda f: f.on("Produce").times(0), "at least once, not 0 times"),
        (lambda f: f.on("Produce").delay(ms=-1), "a delay of -1 ms"),
        (lambda f: f.storage().torn_write(after_bytes=0), "at least a byte, not 0"),
    ],
)
def test_what_makes_no_sense_is_refused(faults: Faults, say, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        say(faults)


def test_a_fault_is_not_in_force_before_its_last_word(plan: FaultPlan, faults: Faults) -> None:
    unfinished = faults.on("Produce").always()

    assert isinstance(unfinished, RequestFaultBuilder)
    assert plan.strike(request()) is None


def test_storage_faults_strike_the_files_of_their_topic_in_the_living_broker(
    tmp_path: Path, plan: FaultPlan, faults: Faults, disk: FaultyFileSystem
) -> None:
    for directory in ("1/x-0", "1/x-y-0", "2/x-0"):
        (tmp_path / directory).mkdir(parents=True)
    plan.directory = f"{tmp_path}/1/"
    torn = faults.storage(topic="x").torn_write(after_bytes=2)

    def write(path: str) -> None:
        channel = disk.open(str(tmp_path / path), create=True)
        try:
            channel.write_at(b"abcd", 0)
        finally:
            channel.close()

    write("2/x-0/log")
    write("1/x-y-0/log")
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        write("1/x-0/log")
    assert (tmp_path / "1/x-0/log").read_bytes() == b"ab"
    assert torn.fired == 1
    write("1/x-0/log")
    assert (tmp_path / "1/x-0/log").read_bytes() == b"abcd"


def test_a_full_disk_stays_full_until_it_is_cleared(
    tmp_path: Path, faults: Faults, disk: FaultyFileSystem
) -> None:
    full = faults.storage().disk_full()
    channel = disk.open(str(tmp_path / "log"), create=True)

    for _ in range(2):
        with pytest.raises(OSError, match=os.strerror(errno.ENOSPC)):
            channel.write_at(b"a", 0)
    assert full.fired == 2
    faults.clear()

    assert channel.write_at(b"a", 0) == 1
    channel.close()
