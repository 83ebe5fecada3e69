"""A broker's listener without a broker: records the controller's requests and answers them."""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Collection

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.headers import (
    RequestHeader,
    encode_response_header,
    parse_request_header,
)
from kafkapy.common.protocol.message_registry import request_class
from kafkapy.common.protocol.messages.leader_and_isr import (
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
)
from kafkapy.common.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from kafkapy.common.protocol.messages.update_metadata import (
    UpdateMetadataRequest,
    UpdateMetadataResponse,
)
from kafkapy.common.protocol.schema import Message
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Broker
from kafkapy.metadata.end_point import EndPoint, SecurityProtocol
from kafkapy.zk.zk_data import BrokerInfo
from tests.helpers.waiting import wait_until

_SIZE = struct.Struct(">i")
Responder = Callable[[Message], Message | None]


class FakeBroker:
    """Serves any number of connections, a thread each. `respond` may answer instead; when it
    gives None the request stays without an answer and the connection is closed."""

    def __init__(self, broker_id: int = 0) -> None:
        self.broker_id = broker_id
        self.respond: Responder = answer
        self.requests: list[Message] = []
        self.headers: list[RequestHeader] = []
        self._lock = threading.Lock()
        self._closed = False
        self._connections: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._spawn(self._accept)

    @property
    def info(self) -> BrokerInfo:
        end_point = EndPoint("PLAINTEXT", SecurityProtocol.PLAINTEXT, "127.0.0.1", self.port)
        return BrokerInfo(Broker(self.broker_id, (end_point,)))

    def received(self, kind: type[Message]) -> list[Message]:
        with self._lock:
            return [request for request in self.requests if isinstance(request, kind)]

    def clear(self) -> None:
        with self._lock:
            self.requests.clear()

    def wait_for(self, kind: type[Message], count: int = 1) -> list[Message]:
        wait_until(lambda: len(self.received(kind)) >= count, message=f"{kind} {self.requests}")
        return self.received(kind)

    def wait_for_metadata(self, partitions: Collection[TopicPartition]) -> None:
        """Until UpdateMetadata requests have told all of them."""
        wait_until(lambda: set(partitions) <= self.metadata.keys(), message=str(partitions))

    @property
    def metadata(
        self,
    ) -> dict[TopicPartition, UpdateMetadataRequest.UpdateMetadataPartitionState]:
        """What UpdateMetadata requests have told since the last `clear`."""
        return {
            TopicPartition(topic.topic_name, state.partition_index): state
            for request in self.received(UpdateMetadataRequest)
            if isinstance(request, UpdateMetadataRequest)
            for topic in request.topic_states
            for state in topic.partition_states
        }

    @property
    def deleted_partitions(self) -> set[TopicPartition]:
        """What StopReplica requests have asked to delete since the last `clear`."""
        return {
            TopicPartition(topic.topic_name, state.partition_index)
            for request in self.received(StopReplicaRequest)
            if isinstance(request, StopReplicaRequest)
            for topic in request.topic_states
            for state in topic.partition_states
            if state.delete_partition
        }

    def hang_up(self) -> None:
        with self._lock:
            connections, self._connections = self._connections, []
        for connection in connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._closed = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()
        for thread in self._threads:
            thread.join()

    def _spawn(self, target: Callable[..., None], *args: object) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                self._connections.append(connection)
            self._spawn(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while (size := connection.recv(4, socket.MSG_WAITALL)) and len(size) == 4:
                payload = connection.recv(_SIZE.unpack(size)[0], socket.MSG_WAITALL)
                header, position = parse_request_header(payload)
                request = request_class(header.api_key).decode(
                    payload[position:], header.api_version
                )
                with self._lock:
                    self.requests.append(request)
                    self.headers.append(header)
                response = self.respond(request)
                if response is None:
                    return
                body = encode_response_header(
                    ApiKeys(header.api_key), header.api_version, header.correlation_id
                ) + response.encode(header.api_version)
                connection.sendall(_SIZE.pack(len(body)) + body)


def answer(request: Message) -> Message:
    """What a broker without problems answers."""
    if isinstance(request, LeaderAndIsrRequest):
        return LeaderAndIsrResponse(
            topics=[
                LeaderAndIsrResponse.LeaderAndIsrTopicError(
                    topic_id=topic.topic_id,
                    partition_errors=[
                        LeaderAndIsrResponse.LeaderAndIsrPartitionError(
                            partition_index=state.partition_index
                        )
                        for state in topic.partition_states
                    ],
                )
                for topic in request.topic_states
            ]
        )
    if isinstance(request, StopReplicaRequest):
        return StopReplicaResponse(
            partition_errors=[
                StopReplicaResponse.StopReplicaPartitionError(
                    topic_name=topic.topic_name, partition_index=state.partition_index
                )
                for topic in request.topic_states
                for state in topic.partition_states
            ]
        )
    assert isinstance(request, UpdateMetadataRequest)
    return UpdateMetadataResponse()


def leader_and_isr_states(
    request: Message,
) -> dict[TopicPartition, LeaderAndIsrRequest.LeaderAndIsrPartitionState]:
    assert isinstance(request, LeaderAndIsrRequest)
    return {
        TopicPartition(topic.topic_name, state.partition_index): state
        for topic in request.topic_states
        for state in topic.partition_states
    }
