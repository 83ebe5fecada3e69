from kafkapy.common.network.memory_pool import MemoryPool


def ignore() -> None:
    pass


def test_reservation_is_granted_while_anything_is_left() -> None:
    pool = MemoryPool(100)

    assert pool.try_allocate(99, ignore)
    assert pool.try_allocate(500, ignore)
    assert pool.available_bytes == -499


def test_reservation_is_refused_when_nothing_is_left() -> None:
    pool = MemoryPool(100)
    pool.try_allocate(100, ignore)

    assert not pool.try_allocate(1, ignore)
    assert pool.available_bytes == 0


def test_waiter_is_called_once_when_something_is_left_again() -> None:
    pool = MemoryPool(100)
    calls = []

    def on_available() -> None:
        calls.append(pool.available_bytes)

    pool.try_allocate(150, ignore)
    pool.try_allocate(1, on_available)
    pool.try_allocate(1, on_available)

    pool.release(50)
    assert calls == []
    pool.release(60)
    assert calls == [60]
    pool.release(40)
    assert calls == [60]
