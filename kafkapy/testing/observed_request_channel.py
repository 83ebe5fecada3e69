"""A request channel that shows every answer to an interceptor."""

from __future__ import annotations

from collections.abc import Callable

from kafkapy.common.protocol.schema import Message
from kafkapy.network.request_channel import Request, RequestChannel
from kafkapy.testing.request_interceptor import RequestInterceptor


class ObservedRequestChannel(RequestChannel):
    """Thread-safe, like its base. `interceptor` is set before the first request."""

    interceptor: RequestInterceptor

    def send_response(
        self,
        request: Request,
        message: Message,
        *,
        on_complete: Callable[[], None] | None = None,
    ) -> None:
        answer = self.interceptor.answering(request, message, self._time)
        if answer is None:
            super().close_connection(request)
        else:
            super().send_response(request, answer, on_complete=on_complete)

    def send_no_op_response(self, request: Request) -> None:
        self.interceptor.ended(request, "no answer", self._time)
        super().send_no_op_response(request)

    def close_connection(self, request: Request) -> None:
        self.interceptor.ended(request, "disconnected", self._time)
        super().close_connection(request)
