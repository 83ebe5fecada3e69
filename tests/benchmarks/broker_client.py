"""The few requests a measurement needs to set its scene, one at a time over one socket."""

import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kafkapy.common.protocol.messages.create_topics import (
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from kafkapy.common.protocol.messages.delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafkapy.common.protocol.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from kafkapy.common.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkapy.common.protocol.messages.produce import ProduceResponse
from kafkapy.common.protocol.schema import Message
from tests.benchmarks.frames import (
    PRODUCE_VERSION,
    frame,
    produce_request,
    response_header_size,
)

_TIMEOUT_S = 20
_RETRY_S = 0.05
_CREATE_VERSION = 5
_DELETE_VERSION = 5
_FIND_COORDINATOR_VERSION = 4
_OFFSET_FETCH_VERSION = 8

Response = TypeVar("Response", bound=Message)


class BenchmarkError(Exception):
    """Something a measurement cannot go on without; the message is for the person at the shell."""


class BrokerClient:
    """Creates, fills and deletes topics on one broker. Not thread-safe."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port
        try:
            self._socket = socket.create_connection((host, port), timeout=_TIMEOUT_S)
        except OSError as e:
            raise BenchmarkError(f"{host}:{port}: {e.strerror or e}") from e
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._socket.close()

    def check_ready(self) -> None:
        """Returns once the broker has answered a request."""
        self._ask(ApiVersionsRequest(), 0, ApiVersionsResponse)

    def create_topic(
        self, name: str, partitions: int, batch: bytes, configs: Mapping[str, str]
    ) -> None:
        """Returns when every partition has taken a batch."""
        topic = CreateTopicsRequest.CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=1,
            configs=[
                CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
                for key, value in configs.items()
            ],
        )
        request = CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_S * 1000)
        answer = self._ask(request, _CREATE_VERSION, CreateTopicsResponse)
        _check(answer.topics[0].error_code, f"creating topic {name}")
        for index in range(partitions):
            self._retry(
                partial(self._append, name, index, batch), f"first record to {name}-{index}"
            )

    def append(self, topic: str, partition: int, batch: bytes) -> None:
        _check(self._append(topic, partition, batch), f"produce to {topic}-{partition}")

    def _append(self, topic: str, partition: int, batch: bytes) -> int:
        request = produce_request(topic, [partition], batch)
        answer = self._ask(request, PRODUCE_VERSION, ProduceResponse)
        return answer.responses[0].partition_responses[0].error_code

    def delete_topic(self, name: str) -> None:
        request = DeleteTopicsRequest(topic_names=[name], timeout_ms=_TIMEOUT_S * 1000)
        answer = self._ask(request, _DELETE_VERSION, DeleteTopicsResponse)
        _check(answer.responses[0].error_code, f"deleting topic {name}")

    def await_coordinator(self, group_ids: Sequence[str]) -> None:
        """Returns when the broker coordinates these groups and has loaded them."""
        self._retry(lambda: self._coordinator_error(group_ids), "finding the coordinator")
        groups = [
            OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group_id, topics=None)
            for group_id in group_ids
        ]
        self._retry(lambda: self._group_error(groups), "loading groups")

    def _coordinator_error(self, group_ids: Sequence[str]) -> int:
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=list(group_ids))
        answer = self._ask(request, _FIND_COORDINATOR_VERSION, FindCoordinatorResponse)
        return next((c.error_code for c in answer.coordinators if c.error_code), 0)

    def _group_error(self, groups: list[OffsetFetchRequest.OffsetFetchRequestGroup]) -> int:
        answer = self._ask(
            OffsetFetchRequest(groups=groups), _OFFSET_FETCH_VERSION, OffsetFetchResponse
        )
        return next((group.error_code for group in answer.groups if group.error_code), 0)

    def _retry(self, ask: Callable[[], int], what: str) -> None:
        """Until it brings no error."""
        deadline = time.monotonic() + _TIMEOUT_S
        while error_code := ask():
            if time.monotonic() > deadline:
                _check(error_code, what)
            time.sleep(_RETRY_S)

    def _ask(self, request: Message, version: int, response: type[Response]) -> Response:
        try:
            self._socket.sendall(frame(request, version))
            size: int = struct.unpack(">i", self._receive(4))[0]
            payload = self._receive(size)
        except OSError as e:
            raise BenchmarkError(f"{self.host}:{self.port}: {e}") from e
        body = memoryview(payload)[response_header_size(response, version) :]
        return response.decode(body, version)

    def _receive(self, size: int) -> bytes:
        received = bytearray()
        while len(received) < size:
            piece = self._socket.recv(size - len(received))
            if not piece:
                raise BenchmarkError(f"{self.host}:{self.port} closed the connection")
            received += piece
        return bytes(received)


def _check(error_code: int, what: str) -> None:
    if error_code != 0:
        raise BenchmarkError(f"{what}: {Errors.for_code(error_code).name}")
