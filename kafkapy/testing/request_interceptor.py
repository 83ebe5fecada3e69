"""What stands between clients and the APIs of a broker under test."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from uuid import UUID

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.protocol.messages.produce import ProduceRequest, ProduceResponse
from kafkapy.common.protocol.messages.update_metadata import UpdateMetadataRequest
from kafkapy.common.protocol.schema import Message
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.network.request_channel import Request
from kafkapy.server.apis.error_responses import error_response
from kafkapy.server.fetch_session import records_size
from kafkapy.testing.fault_plan import FaultPlan
from kafkapy.testing.fault_specs import FaultAction, RequestFault
from kafkapy.testing.fetch_sessions import FetchSessions
from kafkapy.testing.recorded_request import RecordedRequest
from kafkapy.testing.request_log import RequestLog
from kafkapy.testing.request_topics import group_ids, topic_ids, topic_names
from kafkapy.utils.time import Time

# Requests under this name are the test kit's own: they are neither recorded nor disturbed.
OWN_CLIENT_ID = "kafkapy-testing"

_SESSION_ERRORS = frozenset(
    {
        Errors.FETCH_SESSION_ID_NOT_FOUND,
        Errors.INVALID_FETCH_SESSION_EPOCH,
        Errors.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)


@dataclass(slots=True)
class InFlight:
    """A request between its arrival and its answer."""

    request: Request
    recorded: RecordedRequest
    fault: RequestFault | None


class RequestInterceptor:
    """Records requests and answers, and lets faults strike them. Thread-safe.

    It serves one life of a broker; `FaultPlan` and `RequestLog` outlast a rollback.
    """

    def __init__(self, faults: FaultPlan, log: RequestLog) -> None:
        # constant after construction
        self._faults = faults
        self._log = log
        self._sessions = FetchSessions()
        self._lock = threading.Lock()
        # By the identity of the request, which is kept in it. Guarded by self._lock.
        self._in_flight: dict[int, InFlight] = {}

    def learn(self, request: Request) -> None:
        """The controller's requests tell the names of topic ids."""
        if isinstance(request.body, UpdateMetadataRequest):
            self._sessions.learn_names(
                {topic.topic_id: topic.topic_name for topic in request.body.topic_states}
            )

    def arrived(self, request: Request, time: Time) -> InFlight:
        recorded = self._record(request, time)
        self._log.add(recorded)
        fault = self._faults.strike(recorded)
        if fault is not None:
            recorded.fault = str(fault)
        in_flight = InFlight(request, recorded, fault)
        with self._lock:
            self._in_flight[id(request)] = in_flight
        return in_flight

    def answering(self, request: Request, message: Message, time: Time) -> Message | None:
        """The answer to send in place of this one; None to send none and close the connection."""
        in_flight = self._left(request)
        if in_flight is None:
            return message
        fault, recorded = in_flight.fault, in_flight.recorded
        if fault is not None and fault.action is FaultAction.DROP_RESPONSE:
            recorded.details = _details(request, message)
            recorded.complete("disconnected", time.nanoseconds())
            return None
        if isinstance(message, FetchResponse) and isinstance(request.body, FetchRequest):
            if fault is not None and fault.action is FaultAction.ERROR:
                self._put_error(request.body, message, fault)
            self._sessions.answered(request.body, message)
        recorded.details = _details(request, message)
        codes = {code: None for code in message.error_codes() if code != Errors.NONE.code}
        recorded.errors = tuple(Errors.for_code(code).name for code in codes)
        recorded.complete("answered", time.nanoseconds())
        return message

    def ended(self, request: Request, outcome: str, time: Time) -> None:
        """The request gets no answer."""
        in_flight = self._left(request)
        if in_flight is not None:
            in_flight.recorded.complete(outcome, time.nanoseconds())

    def _left(self, request: Request) -> InFlight | None:
        with self._lock:
            return self._in_flight.pop(id(request), None)

    def _record(self, request: Request, time: Time) -> RecordedRequest:
        body = request.body
        topics: set[str] = set()
        groups: set[str] = set()
        if body is not None:
            topics = topic_names(body)
            groups = group_ids(body)
            topics |= {name for i in topic_ids(body) if (name := self._sessions.name_of(i))}
        if isinstance(body, FetchRequest):
            topics |= {partition.topic for partition in self._sessions.partitions(body)}
        return RecordedRequest(
            time_ms=time.milliseconds(),
            client_id=request.header.client_id,
            connection_id=request.context.connection_id,
            api=request.header.api_key.api_name,
            version=request.header.api_version,
            body=body,
            size_in_bytes=request.size_in_bytes,
            topics=frozenset(topics - {""}),
            groups=frozenset(groups),
            _started_ns=time.nanoseconds(),
        )

    def _put_error(self, fetch: FetchRequest, response: FetchResponse, fault: RequestFault) -> None:
        if fault.error in _SESSION_ERRORS:
            response.error_code = fault.error.code
            response.responses = []
            return
        struck: dict[tuple[str, UUID], list[int]] = {}
        for topic, topic_id, partition in sorted(self._sessions.partitions(fetch)):
            if fault.topic in (None, topic):
                struck.setdefault((topic, topic_id), []).append(partition)
        spared = [
            topic
            for topic in response.responses
            if fault.topic is not None
            and fault.topic not in (topic.topic, self._sessions.name_of(topic.topic_id))
        ]
        response.responses = spared + [
            FetchResponse.FetchableTopicResponse(
                topic=topic,
                topic_id=topic_id,
                partitions=[
                    FetchResponse.PartitionData(
                        partition_index=partition,
                        error_code=fault.error.code,
                        high_watermark=-1,
                        records=MemoryRecords.EMPTY,
                    )
                    for partition in partitions
                ],
            )
            for (topic, topic_id), partitions in struck.items()
        ]


def fault_response(request: Request, fault: RequestFault) -> Message | None:
    """The answer that carries the fault's error; None where the connection is closed instead."""
    body = request.body
    if isinstance(body, ProduceRequest) and body.acks == 0:
        return None
    return error_response(request, fault.error, f"put in by a test: {fault}")


def is_handled_first(request: Request) -> bool:
    """Whether an error is put into the answer of a request that was handled: a fetch session must
    go on."""
    return isinstance(request.body, FetchRequest)


def _details(request: Request, message: Message) -> str:
    if isinstance(message, ProduceResponse):
        return ", ".join(
            f"{topic.name}-{partition.index} from offset {partition.base_offset}"
            for topic in message.responses
            for partition in topic.partition_responses
            if partition.error_code == Errors.NONE.code
        )
    if isinstance(message, FetchResponse):
        sizes = (records_size(data) for topic in message.responses for data in topic.partitions)
        return f"{sum(sizes)} bytes"
    return ""
