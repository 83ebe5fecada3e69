from collections.abc import Iterator
from queue import SimpleQueue

import pytest

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.protocol.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from kafkapy.common.protocol.schema import Message
from kafkapy.controller.controller_channel_manager import TOTAL_QUEUE_SIZE, ControllerChannelManager
from kafkapy.controller.controller_config import ControllerConfig
from kafkapy.utils.time import SystemTime
from tests.helpers.waiting import wait_until
from tests.unit.controller.fake_broker import FakeBroker, answer


@pytest.fixture
def peer() -> Iterator[FakeBroker]:
    peer = FakeBroker(3)
    yield peer
    peer.close()


@pytest.fixture
def metrics() -> MetricsRegistry:
    return MetricsRegistry()


@pytest.fixture
def channels(metrics: MetricsRegistry) -> Iterator[ControllerChannelManager]:
    channels = ControllerChannelManager(
        1,
        config=ControllerConfig(),
        listener_name="PLAINTEXT",
        time=SystemTime(),
        metrics=metrics,
    )
    yield channels
    channels.close()


def request(number: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(controller_id=1, controller_epoch=number)


def epochs(peer: FakeBroker) -> list[int]:
    return [r.controller_epoch for r in peer.received(UpdateMetadataRequest)]  # type: ignore[attr-defined]


def test_requests_reach_the_broker_in_order_and_answers_the_callback(
    channels: ControllerChannelManager, peer: FakeBroker
) -> None:
    answers: SimpleQueue[Message] = SimpleQueue()
    channels.startup([peer.info.broker])

    for number in range(5):
        channels.send_request(3, request(number), 8, answers.put)

    assert all(answers.get(timeout=10) == UpdateMetadataResponse() for _ in range(5))
    assert epochs(peer) == [0, 1, 2, 3, 4]
    assert {h.client_id for h in peer.headers} == {"1"}
    assert {h.api_version for h in peer.headers} == {8}


def test_request_is_sent_again_until_it_is_answered(
    channels: ControllerChannelManager, peer: FakeBroker
) -> None:
    failures = iter(range(3))
    peer.respond = lambda r: answer(r) if next(failures, None) is None else None
    answers: SimpleQueue[Message] = SimpleQueue()
    channels.startup([peer.info.broker])

    channels.send_request(3, request(7), 8, answers.put)
    channels.send_request(3, request(8), 8, answers.put)

    answers.get(timeout=10)
    answers.get(timeout=10)
    assert epochs(peer) == [7, 7, 7, 7, 8]


def test_lost_connection_is_made_again(
    channels: ControllerChannelManager, peer: FakeBroker
) -> None:
    answers: SimpleQueue[Message] = SimpleQueue()
    channels.startup([peer.info.broker])
    channels.send_request(3, request(1), 8, answers.put)
    answers.get(timeout=10)

    peer.hang_up()
    channels.send_request(3, request(2), 8, answers.put)

    answers.get(timeout=10)
    assert epochs(peer)[-1] == 2


def test_removed_broker_gets_nothing_more_although_it_never_answered(
    channels: ControllerChannelManager, peer: FakeBroker, metrics: MetricsRegistry
) -> None:
    peer.respond = lambda r: None
    channels.startup([peer.info.broker])
    for number in range(3):
        channels.send_request(3, request(number), 8, lambda response: None)
    peer.wait_for(UpdateMetadataRequest)
    queued = [s.value for s in metrics.samples() if s.spec == TOTAL_QUEUE_SIZE]

    channels.remove_broker(3)
    channels.send_request(3, request(9), 8, lambda response: None)

    assert queued == [2]
    assert 9 not in epochs(peer)
    assert set(epochs(peer)) == {0}


def test_broker_added_twice_keeps_its_thread(
    channels: ControllerChannelManager, peer: FakeBroker
) -> None:
    answers: SimpleQueue[Message] = SimpleQueue()
    channels.add_broker(peer.info.broker)
    channels.add_broker(peer.info.broker)

    channels.send_request(3, request(1), 8, answers.put)

    answers.get(timeout=10)
    assert epochs(peer) == [1]


def test_shutdown_does_not_wait_for_an_answer(
    channels: ControllerChannelManager, peer: FakeBroker
) -> None:
    hold: SimpleQueue[None] = SimpleQueue()

    def never(request: Message) -> None:
        hold.get()

    peer.respond = never
    channels.startup([peer.info.broker])
    channels.send_request(3, request(1), 8, lambda response: None)
    wait_until(lambda: epochs(peer) == [1])

    channels.shutdown()

    hold.put(None)


def test_callback_that_fails_does_not_cut_the_broker_off(
    channels: ControllerChannelManager, peer: FakeBroker
) -> None:
    answers: SimpleQueue[Message] = SimpleQueue()
    channels.startup([peer.info.broker])

    def fail(response: Message) -> None:
        raise RuntimeError("broken")

    channels.send_request(3, request(1), 8, fail)
    channels.send_request(3, request(2), 8, answers.put)

    answers.get(timeout=10)
    assert epochs(peer) == [1, 2]
