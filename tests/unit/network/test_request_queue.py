import threading

import pytest

from kafkapy.network.request_queue import RequestQueue
from tests.helpers.waiting import wait_until


def test_items_come_out_in_order() -> None:
    queue: RequestQueue[int] = RequestQueue(10)

    for item in range(3):
        assert queue.offer(item)

    assert [queue.poll() for _ in range(4)] == [0, 1, 2, None]


def test_full_queue_refuses() -> None:
    queue: RequestQueue[int] = RequestQueue(2)

    assert [queue.offer(item) for item in range(3)] == [True, True, False]
    assert len(queue) == 2


def test_put_ignores_the_bound() -> None:
    queue: RequestQueue[int] = RequestQueue(1)
    queue.offer(1)

    queue.put(2)

    assert [queue.poll(), queue.poll()] == [1, 2]


def test_take_gives_up_after_the_time_out() -> None:
    queue: RequestQueue[int] = RequestQueue(1)

    assert queue.take(0.001) is None


@pytest.mark.parametrize("capacity", [1, 2, 5, 20])
def test_refused_producer_is_called_once_when_half_is_empty(capacity: int) -> None:
    queue: RequestQueue[int] = RequestQueue(capacity)
    while queue.offer(0):
        pass
    sizes: list[int] = []

    queue.call_when_half_empty(lambda: sizes.append(len(queue)))
    while queue.poll() is not None:
        pass

    assert sizes == [capacity // 2]


def test_refused_producer_is_called_at_once_when_the_queue_has_emptied_meanwhile() -> None:
    queue: RequestQueue[int] = RequestQueue(4)
    calls = []

    queue.call_when_half_empty(lambda: calls.append(True))

    assert calls == [True]


def test_parked_consumer_is_woken() -> None:
    queue: RequestQueue[str] = RequestQueue(4)
    taken: list[str | None] = []
    thread = threading.Thread(target=lambda: taken.append(queue.take(60)))
    thread.start()

    queue.put("item")
    thread.join(30)

    assert taken == ["item"]


def test_items_do_not_wait_behind_a_consumer_that_blocks() -> None:
    """One wake-up for several items is enough: each woken consumer wakes the next."""
    queue: RequestQueue[int] = RequestQueue(10)
    together = threading.Barrier(3, timeout=30)

    def consume() -> None:
        assert queue.take(60) is not None
        together.wait()

    threads = [threading.Thread(target=consume) for _ in range(3)]
    for thread in threads:
        thread.start()
    wait_until(lambda: len(queue._parked) == 3)

    for item in range(3):
        queue.offer(item)
    queue.wake_handler()

    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


def test_nothing_is_lost_or_doubled_between_many_threads() -> None:
    queue: RequestQueue[int] = RequestQueue(16)
    producers, consumers, each = 3, 4, 2000
    taken: list[list[int]] = [[] for _ in range(consumers)]
    stop = -1

    def produce(first: int) -> None:
        for item in range(first, first + each):
            while not queue.offer(item):
                room = threading.Event()
                queue.call_when_half_empty(room.set)
                queue.wake_handler()
                assert room.wait(60)
            if item % 7 == 0:
                queue.wake_handler()
        queue.wake_handler()

    def consume(mine: list[int]) -> None:
        while True:
            item = queue.poll()
            if item is None:
                item = queue.take(60)
            assert item is not None
            if item == stop:
                return
            mine.append(item)

    threads = [threading.Thread(target=consume, args=(mine,)) for mine in taken]
    makers = [threading.Thread(target=produce, args=(i * each,)) for i in range(producers)]
    for thread in threads + makers:
        thread.start()
    for thread in makers:
        thread.join(60)
    for _ in threads:
        queue.put(stop)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()

    assert sorted(item for mine in taken for item in mine) == list(range(producers * each))
