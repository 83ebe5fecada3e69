from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.utils.time import Time
from kafkapy.zk.checked_ephemeral import CheckedEphemeral
from kafkapy.zk.embedded_store import EmbeddedStore
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.metadata_store import (
    CreateMode,
    CreateRequest,
    ExistsRequest,
    GetDataRequest,
    MultiRequest,
    Request,
    Response,
    SetDataRequest,
    StoreCode,
)
from kafkapy.zk.zk_request_sender import REQUEST_LATENCY_MS, ZkRequestSender
from tests.helpers.mock_time import MockTime


class FlakyStore(EmbeddedStore):
    """Loses requests of one kind: on their way, or on the way back once they were carried out."""

    def __init__(self, path: Path, time: Time) -> None:
        super().__init__(path, time)
        self.waits = 0
        self.session_id_override: int | None = None
        self._losses = 0
        self._kind: type = object
        self._after_applying = False

    def lose(self, count: int, kind: type, *, after_applying: bool = False) -> None:
        self._losses, self._kind, self._after_applying = count, kind, after_applying

    @property
    def session_id(self) -> int:
        return self.session_id_override or super().session_id

    def handle_requests(self, requests: Sequence[Request]) -> list[Response]:
        return [self._handle(request) for request in requests]

    def wait_until_connected(self) -> None:
        self.waits += 1

    def _handle(self, request: Request) -> Response:
        if not self._losses or not isinstance(request, self._kind):
            return super().handle_requests([request])[0]
        self._losses -= 1
        if self._after_applying:
            super().handle_requests([request])
        return Response(request.path, StoreCode.CONNECTION_LOSS)


@pytest.fixture
def flaky(tmp_path: Path, time: MockTime) -> Iterator[FlakyStore]:
    store = FlakyStore(tmp_path / "x.sqlite", time)
    yield store
    store.close()


@pytest.fixture
def sender(flaky: FlakyStore, time: MockTime) -> ZkRequestSender:
    return ZkRequestSender(flaky, time, MetricsRegistry())


def test_only_lost_requests_are_sent_again_once_connected(
    flaky: FlakyStore, sender: ZkRequestSender
) -> None:
    flaky.lose(2, CreateRequest)

    responses = sender.send_all([CreateRequest(f"/n{i}") for i in range(4)])

    assert [r.name for r in responses] == ["/n0", "/n1", "/n2", "/n3"]
    assert flaky.waits == 1


def test_latency_is_measured_per_batch(flaky: FlakyStore) -> None:
    registry = MetricsRegistry()
    sender = ZkRequestSender(flaky, MockTime(auto_tick_ms=3), registry)

    sender.send(ExistsRequest("/a"))

    samples = [s for s in registry.samples() if s.spec is REQUEST_LATENCY_MS]
    assert len(samples) == 1


def test_ephemeral_whose_creation_was_acknowledged_to_nobody_is_ours(
    flaky: FlakyStore, sender: ZkRequestSender
) -> None:
    flaky.lose(1, CreateRequest, after_applying=True)

    stat = CheckedEphemeral(sender, flaky).create("/e", b"x")

    assert stat.ephemeral_owner == flaky.session_id
    assert sender.send(GetDataRequest("/e")).stat == stat


def test_ephemeral_of_our_previous_session_is_replaced(
    flaky: FlakyStore, sender: ZkRequestSender
) -> None:
    other = flaky.new_session()
    ephemeral = CheckedEphemeral(sender, flaky)
    flaky.session_id_override = other.session_id
    ephemeral.create("/mine", b"")
    other.handle_requests([CreateRequest("/e", b"old", CreateMode.EPHEMERAL)])
    flaky.session_id_override = None

    stat = ephemeral.create("/e", b"new")

    assert stat.ephemeral_owner == flaky.session_id
    assert sender.send(GetDataRequest("/e")).data == b"new"
    other.close()


def test_controller_whose_registration_was_acknowledged_to_nobody_finds_itself_registered(
    flaky: FlakyStore, time: MockTime
) -> None:
    flaky.lose(1, MultiRequest, after_applying=True)

    registered = KafkaZkClient(flaky, time).register_controller_and_increment_controller_epoch(3)

    assert registered == (1, 1)


def test_producer_id_block_acknowledged_to_nobody_is_not_lost(
    flaky: FlakyStore, time: MockTime
) -> None:
    client = KafkaZkClient(flaky, time)
    client.create_top_level_paths()
    flaky.lose(1, SetDataRequest, after_applying=True)

    blocks = [client.get_new_producer_id_block(0) for _ in range(2)]

    assert [block.first_producer_id for block in blocks] == [0, 1000]
