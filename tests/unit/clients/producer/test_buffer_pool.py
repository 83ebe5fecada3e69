import threading

import pytest

from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.producer.buffer_pool import BufferExhaustedError, BufferPool
from kafkapy.utils.time import SystemTime
from tests.helpers.waiting import wait_until

LONG_MS = 30_000


@pytest.fixture
def pool() -> BufferPool:
    return BufferPool(100, SystemTime())


class Waiter(threading.Thread):
    """Allocates on a thread of its own, and remembers how that ended."""

    def __init__(self, pool: BufferPool, size: int, done: list[int]) -> None:
        super().__init__(daemon=True)
        self._pool, self._size, self._done = pool, size, done
        self.error: Exception | None = None
        queued = pool.queued
        self.start()
        wait_until(lambda: pool.queued > queued or not self.is_alive())

    def run(self) -> None:
        try:
            self._pool.allocate(self._size, LONG_MS)
            self._done.append(self._size)
        except IllegalStateError as error:
            self.error = error


def test_bytes_are_taken_and_given_back(pool: BufferPool) -> None:
    pool.allocate(60, 0)
    pool.allocate(40, 0)
    assert pool.available_bytes == 0

    pool.deallocate(60)

    assert pool.available_bytes == 60


def test_more_than_there_is_fails_after_the_time(pool: BufferPool) -> None:
    pool.allocate(60, 0)

    with pytest.raises(BufferExhaustedError, match=r"50 bytes of the 100 of buffer\.memory"):
        pool.allocate(50, 10)

    assert (pool.available_bytes, pool.queued, pool.exhausted_count) == (40, 0, 1)


def test_more_than_the_pool_is_refused(pool: BufferPool) -> None:
    with pytest.raises(ValueError, match="101"):
        pool.allocate(101, LONG_MS)


def test_waiters_are_served_in_the_order_they_came(pool: BufferPool) -> None:
    done: list[int] = []
    pool.allocate(100, 0)
    waiters = [Waiter(pool, size, done) for size in (90, 5, 4)]

    pool.deallocate(50)
    # Enough for the small ones, but the large one was first.
    assert done == []
    pool.deallocate(50)

    for waiter in waiters:
        waiter.join(10)
    assert sorted(done) == [4, 5, 90] and done[0] == 90
    assert pool.available_bytes == 1


def test_newcomer_does_not_overtake_who_waits(pool: BufferPool) -> None:
    done: list[int] = []
    pool.allocate(60, 0)
    waiter = Waiter(pool, 90, done)

    with pytest.raises(BufferExhaustedError):
        pool.allocate(10, 10)

    pool.deallocate(60)
    waiter.join(10)
    assert done == [90]


def test_closing_fails_who_waits_and_who_comes_later(pool: BufferPool) -> None:
    pool.allocate(100, 0)
    waiters = [Waiter(pool, 10, []) for _ in range(2)]

    pool.close()

    for waiter in waiters:
        waiter.join(10)
        assert waiter.error is not None
    with pytest.raises(IllegalStateError, match="closed"):
        pool.allocate(1, 0)
