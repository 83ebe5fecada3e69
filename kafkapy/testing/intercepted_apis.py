"""The APIs of a broker under test, as its clients meet them."""

from __future__ import annotations

from kafkapy.network.request_channel import Request
from kafkapy.server.request_handler import ApiRequestHandler
from kafkapy.testing.fault_specs import FaultAction, RequestFault
from kafkapy.testing.observed_request_channel import ObservedRequestChannel
from kafkapy.testing.request_gate import RequestGate
from kafkapy.testing.request_interceptor import (
    OWN_CLIENT_ID,
    RequestInterceptor,
    fault_response,
    is_handled_first,
)
from kafkapy.utils.scheduler import KafkaScheduler
from kafkapy.utils.time import Time

# The listener on which a broker under test speaks to itself.
INTERNAL_LISTENER = "KAFKAPY_TESTING"


class InterceptedApis:
    """Stands in front of KafkaApis. Called by many threads at once."""

    def __init__(
        self,
        channel: ObservedRequestChannel,
        apis: ApiRequestHandler,
        *,
        interceptor: RequestInterceptor,
        gate: RequestGate,
        delays: KafkaScheduler,
        time: Time,
    ) -> None:
        # constant after construction
        self._channel = channel
        self._apis = apis
        self._interceptor = interceptor
        self._gate = gate
        self._delays = delays
        self._time = time

    def handle(self, request: Request) -> None:
        if request.context.listener_name == INTERNAL_LISTENER:
            self._interceptor.learn(request)
            self._apis.handle(request)
        elif request.header.client_id == OWN_CLIENT_ID:
            self._apis.handle(request)
        else:
            self._gate.pass_through(self._handle, request)

    def _handle(self, request: Request) -> None:
        fault = self._interceptor.arrived(request, self._time).fault
        match fault:
            case RequestFault(action=FaultAction.DISCONNECT):
                self._channel.close_connection(request)
            case RequestFault(action=FaultAction.DELAY, delay_ms=delay_ms):
                self._delays.schedule_once(
                    "delayed request", lambda: self._apis.handle(request), delay_ms
                )
            case RequestFault(action=FaultAction.ERROR) if not is_handled_first(request):
                response = fault_response(request, fault)
                if response is None:
                    self._channel.close_connection(request)
                else:
                    self._channel.send_response(request, response)
            case _:
                self._apis.handle(request)
