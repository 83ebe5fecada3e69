from collections.abc import Callable, Iterator
from queue import Queue

import pytest

from kafkapy.zk.embedded_store import EmbeddedStore
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.zk_node_change_notification_listener import ZkNodeChangeNotificationListener
from tests.helpers.mock_time import MockTime
from tests.unit.zk.handlers import RecordingStateHandler

ROOT, PREFIX = "/changes", "change_"
Listen = Callable[[Callable[[bytes], None]], ZkNodeChangeNotificationListener]


@pytest.fixture
def listen(zk_client: KafkaZkClient, time: MockTime) -> Iterator[Listen]:
    started: list[ZkNodeChangeNotificationListener] = []

    def start(handler: Callable[[bytes], None]) -> ZkNodeChangeNotificationListener:
        listener = ZkNodeChangeNotificationListener(
            zk_client, ROOT, PREFIX, handler, time=time, change_expiration_ms=1000
        )
        started.append(listener)
        listener.init()
        return listener

    zk_client.znodes.create_recursive(ROOT)
    yield start
    for listener in started:
        listener.close()


def notify(zk_client: KafkaZkClient, data: bytes) -> None:
    zk_client.znodes.create_sequential_persistent_path(f"{ROOT}/{PREFIX}", data)


def take(queue: "Queue[bytes]", count: int) -> list[bytes]:
    return [queue.get(timeout=20) for _ in range(count)]


def test_notifications_are_handled_once_and_in_order(
    zk_client: KafkaZkClient, listen: Listen
) -> None:
    seen: Queue[bytes] = Queue()
    notify(zk_client, b"before")

    listen(seen.put)
    before = take(seen, 1)
    for i in range(20):
        notify(zk_client, str(i).encode())

    assert before == [b"before"]
    assert take(seen, 20) == [str(i).encode() for i in range(20)]
    assert seen.empty()


def test_notification_that_fails_does_not_stop_those_behind_it(
    zk_client: KafkaZkClient, listen: Listen
) -> None:
    seen: Queue[bytes] = Queue()

    def handle(data: bytes) -> None:
        if data == b"bad":
            raise ValueError("on purpose")
        seen.put(data)

    notify(zk_client, b"bad")
    notify(zk_client, b"good")
    listen(handle)

    assert take(seen, 1) == [b"good"]


def test_old_notifications_are_purged(
    zk_client: KafkaZkClient, listen: Listen, time: MockTime
) -> None:
    seen: Queue[bytes] = Queue()
    notify(zk_client, b"old")
    listener = listen(seen.put)
    take(seen, 1)

    time.sleep(1001)
    notify(zk_client, b"new")
    take(seen, 1)
    listener.close()
    listener.process_notifications()

    assert zk_client.znodes.get_children(ROOT) == ("change_0000000001",)
    assert seen.empty()


def test_new_session_looks_again(
    embedded: EmbeddedStore, zk_client: KafkaZkClient, listen: Listen
) -> None:
    seen: Queue[bytes] = Queue()
    listen(seen.put)
    notify(zk_client, b"1")
    first = take(seen, 1)
    state = RecordingStateHandler()
    embedded.register_state_change_handler(state)

    embedded.expire_session()
    assert [state.next(), state.next()] == ["before", "after"]
    notify(zk_client, b"2")

    assert first == [b"1"]
    assert take(seen, 1) == [b"2"]


def test_closed_listener_hears_nothing(zk_client: KafkaZkClient, listen: Listen) -> None:
    seen: Queue[bytes] = Queue()
    listener = listen(seen.put)
    notify(zk_client, b"1")
    take(seen, 1)

    listener.close()
    notify(zk_client, b"2")

    assert seen.empty()
