from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import pytest

from kafkapy.clients.blocking_node_client import BlockingNodeClient
from kafkapy.clients.inter_broker_send_thread import (
    InterBrokerSendThread,
    RequestAndCompletionHandler,
)
from kafkapy.common.protocol.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from kafkapy.common.protocol.schema import Message
from kafkapy.metadata.broker import Node
from kafkapy.utils.backoff import ExponentialBackoff
from kafkapy.utils.time import SystemTime
from tests.helpers.waiting import wait_until
from tests.unit.controller.fake_broker import FakeBroker


class Owner:
    """Has requests, and remembers what came back."""

    def __init__(self, port: int) -> None:
        self.queue: deque[RequestAndCompletionHandler] = deque()
        self.answers: list[Message | None] = []
        client = BlockingNodeClient(
            Node(0, "127.0.0.1", port),
            client_id="test",
            time=SystemTime(),
            request_timeout_ms=10_000,
            reconnect_backoff=ExponentialBackoff(1, 2, 10),
        )
        self.thread = InterBrokerSendThread("sender", client, self._next)
        self.thread.start()

    def _next(self) -> RequestAndCompletionHandler | None:
        return self.queue.popleft() if self.queue else None

    def send(self, handler=None) -> None:
        self.queue.append(
            RequestAndCompletionHandler(
                UpdateMetadataRequest(controller_id=1), 8, handler or self.answers.append
            )
        )
        self.thread.wakeup()


@pytest.fixture
def peer() -> Iterator[FakeBroker]:
    peer = FakeBroker()
    yield peer
    peer.close()


@pytest.fixture
def owner(peer: FakeBroker) -> Iterator[Owner]:
    owner = Owner(peer.port)
    yield owner
    owner.thread.shutdown()


def test_each_request_gets_its_response(owner: Owner) -> None:
    for _ in range(3):
        owner.send()

    wait_until(lambda: len(owner.answers) == 3)
    assert owner.answers == [UpdateMetadataResponse()] * 3


def test_handler_that_fails_does_not_end_the_thread(owner: Owner) -> None:
    def fail(_: Message | None) -> None:
        raise RuntimeError("handler")

    owner.send(fail)
    owner.send()

    wait_until(lambda: owner.answers)
    assert owner.answers == [UpdateMetadataResponse()]


def test_unanswered_request_is_reported_as_such(peer: FakeBroker, owner: Owner) -> None:
    peer.close()

    owner.send()

    wait_until(lambda: owner.answers)
    assert owner.answers == [None]


def test_shutdown_ends_an_idle_thread(owner: Owner) -> None:
    owner.thread.shutdown()

    assert not owner.thread.is_alive()
