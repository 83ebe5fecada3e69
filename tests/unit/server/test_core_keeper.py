import os
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass, field

import pytest

from kafkapy.server.core_keeper import CoreKeeper, LinuxCores

_LOOK_EVERY_S = 1.0


@dataclass
class Machine:
    """Cores whose work the test decides on."""

    busy: dict[int, float]
    own: float = 0.0
    now_s: float = 0.0
    moves: list[int] = field(default_factory=list)

    def busy_s(self) -> dict[int, float]:
        return dict(self.busy)

    def own_s(self) -> float:
        return self.own

    def keep_on(self, core: int) -> None:
        self.moves.append(core)

    def passes(self, share: float, *use: float) -> None:
        """One interval, with what this process used of a core and how busy each core was."""
        self.now_s += _LOOK_EVERY_S
        self.own += share * _LOOK_EVERY_S
        for core, busy in enumerate(use):
            self.busy[core] += busy * _LOOK_EVERY_S


@pytest.fixture
def machine() -> Machine:
    return Machine(busy={0: 100.0, 1: 7.0, 2: 50.0})


@pytest.fixture
def keeper(machine: Machine) -> CoreKeeper:
    keeper = CoreKeeper(machine, clock=lambda: machine.now_s)
    keeper.look()
    return keeper


def test_broker_with_little_to_do_is_left_alone(machine: Machine, keeper: CoreKeeper) -> None:
    machine.passes(0.05, 0.9, 0.0, 0.9)
    keeper.look()

    assert machine.moves == []


def test_working_broker_gets_the_freest_core(machine: Machine, keeper: CoreKeeper) -> None:
    machine.passes(0.5, 0.9, 0.8, 0.3)
    keeper.look()

    assert machine.moves == [2]


@pytest.mark.parametrize(
    ("share", "use", "then"),
    [
        (1.0, (0.0, 0.0, 1.0), 2),  # nothing but the broker itself keeps its core busy
        (0.5, (0.1, 0.3, 1.0), 0),
        (0.5, (0.9, 0.8, 1.0), 2),
    ],
    ids=["alone there", "others crowd it", "no other core is freer"],
)
def test_it_moves_only_to_a_freer_core(
    machine: Machine, keeper: CoreKeeper, share: float, use: tuple[float, ...], then: int
) -> None:
    machine.passes(0.5, 0.9, 0.8, 0.3)
    keeper.look()
    machine.passes(share, *use)
    keeper.look()

    assert machine.moves == [2, then]


def test_it_leaves_a_core_that_is_taken_out_of_use(machine: Machine, keeper: CoreKeeper) -> None:
    machine.passes(0.5, 0.9, 0.8, 0.3)
    keeper.look()
    del machine.busy[2]
    machine.passes(0.5, 0.9, 0.8)
    keeper.look()

    assert machine.moves == [2, 1]


def test_one_core_is_all_there_is_to_keep_to() -> None:
    machine = Machine(busy={0: 0.0})
    keeper = CoreKeeper(machine, clock=lambda: machine.now_s)
    keeper.look()

    machine.passes(0.5, 0.9)
    keeper.look()

    assert machine.moves == []


def test_machine_that_tells_nothing_is_left_alone() -> None:
    class Silent(Machine):
        def busy_s(self) -> dict[int, float]:
            raise FileNotFoundError("/proc/stat")

    machine = Silent(busy={})
    with CoreKeeper(machine):
        pass  # and its thread ends by itself

    assert machine.moves == []


@pytest.mark.skipif(sys.platform != "linux", reason="cores are kept on Linux alone")
def test_linux_moves_every_thread() -> None:
    allowed = os.sched_getaffinity(0)
    cores = LinuxCores()
    found: list[set[int]] = []
    asked, answered = threading.Event(), threading.Event()

    def other() -> None:
        asked.wait()
        found.append(os.sched_getaffinity(0))
        answered.set()

    threading.Thread(target=other).start()
    core = max(cores.busy_s())
    try:
        cores.keep_on(core)
        asked.set()
        answered.wait()
        here = os.sched_getaffinity(0)
    finally:
        for thread in os.listdir("/proc/self/task"):
            with suppress(ProcessLookupError):  # it has ended meanwhile
                os.sched_setaffinity(int(thread), allowed)

    assert found == [{core}]
    assert here == {core}


@pytest.mark.skipif(sys.platform != "linux", reason="cores are kept on Linux alone")
def test_linux_tells_how_busy_the_allowed_cores_are() -> None:
    cores = LinuxCores()
    before = cores.busy_s()
    own = cores.own_s()
    while cores.own_s() - own < 0.05:  # five ticks of work
        pass

    after = cores.busy_s()

    assert before.keys() == after.keys() == os.sched_getaffinity(0)
    assert sum(after.values()) > sum(before.values())
