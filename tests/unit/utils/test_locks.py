import threading

import pytest

from kafkapy.utils.locks import ReentrantReadWriteLock
from tests.helpers.waiting import wait_until


def _in_thread(task):
    thread = threading.Thread(target=task, daemon=True)
    thread.start()
    return thread


def test_readers_hold_the_lock_together():
    lock = ReentrantReadWriteLock()
    together = threading.Barrier(3, timeout=10)

    def read():
        with lock.read():
            together.wait()

    threads = [_in_thread(read) for _ in range(3)]

    for thread in threads:
        thread.join(10)
        assert not thread.is_alive()


def test_writer_waits_for_readers_and_readers_for_the_writer():
    lock = ReentrantReadWriteLock()
    events = []
    writing = threading.Event()
    may_stop_writing = threading.Event()

    def write():
        with lock.write():
            events.append("write")
            writing.set()
            may_stop_writing.wait(10)
            events.append("written")

    def read():
        with lock.read():
            events.append("read")

    with lock.read():
        writer = _in_thread(write)
        wait_until(lambda: lock._waiting_writers == 1)
        events.append("reader done")
    writing.wait(10)
    reader = _in_thread(read)
    wait_until(lambda: lock._waiting_readers == 1)
    may_stop_writing.set()
    writer.join(10)
    reader.join(10)

    assert events == ["reader done", "write", "written", "read"]


def test_waiting_writer_holds_back_new_readers_but_not_reentrant_ones():
    lock = ReentrantReadWriteLock()
    order = []

    def write():
        with lock.write():
            order.append("writer")

    def read():
        with lock.read():
            order.append("new reader")

    with lock.read():
        writer = _in_thread(write)
        wait_until(lambda: lock._waiting_writers == 1)
        reader = _in_thread(read)
        wait_until(lambda: lock._waiting_readers == 1)
        with lock.read():
            order.append("old reader again")
    writer.join(10)
    reader.join(10)

    assert order == ["old reader again", "writer", "new reader"]


def test_writer_may_read_and_keep_reading_after_it_stops_writing():
    lock = ReentrantReadWriteLock()
    entered = threading.Event()

    def read():
        with lock.read():
            entered.set()

    write, read_guard = lock.write(), lock.read()
    write.__enter__()
    with lock.write():
        pass
    read_guard.__enter__()
    write.__exit__(None, None, None)
    other = _in_thread(read)
    other.join(10)

    assert entered.is_set()
    assert not lock.is_write_locked_by_current_thread()
    read_guard.__exit__(None, None, None)
    with lock.write():
        assert lock.is_write_locked_by_current_thread()


def test_reader_cannot_turn_into_a_writer():
    lock = ReentrantReadWriteLock()

    with lock.read(), pytest.raises(RuntimeError):
        lock.write().__enter__()

    with lock.write():
        pass


def test_exception_releases_the_lock():
    lock = ReentrantReadWriteLock()

    with pytest.raises(ValueError), lock.write():
        raise ValueError
    with pytest.raises(ValueError), lock.read():
        raise ValueError

    writer = _in_thread(lambda: lock.write().__enter__())
    writer.join(10)
    assert not writer.is_alive()


def test_no_writer_overlaps_with_anyone():
    lock = ReentrantReadWriteLock()
    inside = {"readers": 0, "writers": 0}
    counting = threading.Lock()
    broken = []

    def enter(kind):
        with counting:
            inside[kind] += 1
            if inside["writers"] > 1 or (inside["writers"] and inside["readers"]):
                broken.append(dict(inside))

    def leave(kind):
        with counting:
            inside[kind] -= 1

    def work(seed):
        for i in range(200):
            if (i + seed) % 5 == 0:
                with lock.write():
                    enter("writers")
                    leave("writers")
            else:
                with lock.read():
                    enter("readers")
                    leave("readers")

    threads = [_in_thread(lambda seed=seed: work(seed)) for seed in range(4)]
    for thread in threads:
        thread.join(30)

    assert not any(thread.is_alive() for thread in threads)
    assert broken == []
