"""A lock that goes to whoever has waited longest."""

import threading

from kafkapy.utils.fair_lock import FairLock
from tests.helpers.waiting import wait_until


def test_one_thread_at_a_time() -> None:
    lock = FairLock()
    total = 0

    def add() -> None:
        nonlocal total
        for _ in range(500):
            with lock:
                before = total
                total = before + 1

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert total == 2_000


def test_waiters_are_served_in_order_and_before_the_holder_comes_back() -> None:
    lock = FairLock()
    order: list[str] = []

    def wait(name: str) -> None:
        with lock:
            order.append(name)

    threads = []
    with lock:
        for name in ("first", "second"):
            thread = threading.Thread(target=wait, args=(name,))
            thread.start()
            threads.append(thread)
            wait_until(lambda: len(lock._waiters) == len(threads))
    with lock:
        order.append("holder")
    for thread in threads:
        thread.join()

    assert order == ["first", "second", "holder"]


def test_a_lock_kept_by_an_interrupted_entry_is_taken_over_and_given_back() -> None:
    lock = FairLock()
    lock.__enter__()  # and a signal's exception before the block that would have left it
    served = threading.Event()

    def wait() -> None:
        with lock:
            served.set()

    waiter = threading.Thread(target=wait)
    waiter.start()
    wait_until(lambda: len(lock._waiters) == 1)
    with lock:
        assert not served.is_set()

    waiter.join(timeout=10)
    assert served.is_set()
