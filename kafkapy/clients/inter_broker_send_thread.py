"""Requests from one broker to another, in the background."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from kafkapy.clients.blocking_node_client import BlockingNodeClient
from kafkapy.common.errors import NetworkError, RequestTimeoutError
from kafkapy.common.protocol.schema import Message
from kafkapy.utils.threads import ShutdownableThread

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RequestAndCompletionHandler:
    """A request and what is done with its response; None: it was not answered.

    Ports: org.apache.kafka.server.util.RequestAndCompletionHandler
    """

    request: Message
    version: int
    handler: Callable[[Message | None], None]


GenerateRequest = Callable[[], RequestAndCompletionHandler | None]


class InterBrokerSendThread(ShutdownableThread):
    """Sends one broker whatever its owner has for it, one request at a time.

    The owner calls `wakeup` when there is something; the thread then asks it for requests until
    there is none. A handler that fails is logged and costs nothing else.

    Ports: org.apache.kafka.server.util.InterBrokerSendThread
    """

    def __init__(
        self, name: str, client: BlockingNodeClient, generate_request: GenerateRequest
    ) -> None:
        super().__init__(name)
        self._client = client  # constant after construction
        self._generate_request = generate_request
        self._woken_up = threading.Event()

    def wakeup(self) -> None:
        self._woken_up.set()

    def initiate_shutdown(self) -> bool:
        initiated = super().initiate_shutdown()
        if initiated:
            self._client.initiate_close()
            self._woken_up.set()
        return initiated

    def await_shutdown(self) -> None:
        super().await_shutdown()
        self._client.close()

    def do_work(self) -> None:
        self._woken_up.wait()
        # Before looking, so that what is added after the look wakes it up again.
        self._woken_up.clear()
        while self.is_running and (outgoing := self._generate_request()) is not None:
            response = self._send(outgoing)
            try:
                outgoing.handler(response)
            except Exception:
                logger.exception(
                    "Handling the response to %s failed", type(outgoing.request).__name__
                )

    def _send(self, outgoing: RequestAndCompletionHandler) -> Message | None:
        try:
            return self._client.send_and_receive(outgoing.request, outgoing.version)
        except (NetworkError, RequestTimeoutError) as error:
            if self.is_running:
                logger.info("%s was not answered: %s", type(outgoing.request).__name__, error)
            return None
