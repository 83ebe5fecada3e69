"""One thread at a time, and none once it is closed."""

import threading

import pytest

from kafkapy.clients.client_errors import ConcurrentModificationError, IllegalStateError
from kafkapy.clients.single_thread_guard import SingleThreadGuard


def in_another_thread(guard: SingleThreadGuard) -> list[BaseException | None]:
    outcome: list[BaseException | None] = []

    def enter() -> None:
        try:
            with guard:
                outcome.append(None)
        except ConcurrentModificationError as error:
            outcome.append(error)

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return outcome


def test_a_second_thread_is_refused_while_the_first_is_inside() -> None:
    guard = SingleThreadGuard("consumer")

    with guard, guard:
        (error,) = in_another_thread(guard)

    assert isinstance(error, ConcurrentModificationError)
    assert "consumer" in str(error)
    assert in_another_thread(guard) == [None]


def test_a_closed_client_is_refused() -> None:
    guard = SingleThreadGuard("consumer")
    guard.is_closed = True

    with pytest.raises(IllegalStateError, match="This consumer has been closed"), guard:
        pass
