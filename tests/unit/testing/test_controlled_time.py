import pytest

from kafkapy.testing.controlled_time import ControlledTime
from kafkapy.utils.time import SystemTime


class Listener:
    def __init__(self) -> None:
        self.moves = 0
        self.behind = False

    def clock_moved(self) -> None:
        self.moves += 1

    def is_behind(self) -> bool:
        return self.behind


def test_advance_moves_both_clocks_by_the_same() -> None:
    system, clock = SystemTime(), ControlledTime()
    wall_ms, monotonic_ns = clock.milliseconds(), clock.nanoseconds()

    clock.advance(86_400_000)

    assert clock.offset_ms == 86_400_000
    assert 86_400_000 <= clock.milliseconds() - wall_ms < 86_460_000
    assert 86_400_000 <= (clock.nanoseconds() - monotonic_ns) // 1_000_000 < 86_460_000
    assert clock.milliseconds() - system.milliseconds() >= 86_399_000


def test_a_clock_cannot_be_set_back() -> None:
    with pytest.raises(ValueError, match="cannot be set back, by -1 ms"):
        ControlledTime().advance(-1)


def test_time_outs_stand_still_until_a_frozen_clock_is_thawed() -> None:
    clock = ControlledTime(5_000, is_frozen=True)
    frozen_ns = clock.nanoseconds()
    clock.sleep(2)
    assert clock.nanoseconds() == frozen_ns
    assert clock.milliseconds() >= SystemTime().milliseconds() + 4_000

    clock.thaw()

    clock.sleep(2)
    assert frozen_ns < clock.nanoseconds() < frozen_ns + 60_000_000_000


def test_listeners_are_told_until_they_are_removed() -> None:
    clock, listener = ControlledTime(), Listener()
    clock.add_listener(listener)
    clock.advance(1)

    clock.remove_listener(listener)

    clock.advance(1)
    assert listener.moves == 1


def test_settle_gives_up_on_a_listener_that_stays_behind() -> None:
    clock, listener = ControlledTime(), Listener()
    clock.add_listener(listener)
    listener.behind = True

    assert not clock.settle(5)
    listener.behind = False
    assert clock.settle(5)
