from collections.abc import Sequence

from kafkapy.common.errors import ControllerMovedError
from kafkapy.common.metrics.registry import MetricsRegistry
from kafkapy.common.metrics.stats import Histogram
from kafkapy.utils.time import Time
from kafkapy.zk.metadata_store import (
    MATCH_ANY_VERSION,
    CheckOp,
    CreateRequest,
    DeleteRequest,
    MetadataStore,
    MultiRequest,
    Request,
    Response,
    SetDataRequest,
    StoreCode,
)
from kafkapy.zk.zk_data import ControllerEpochZNode

REQUEST_LATENCY_MS = Histogram(
    "kafka.server:type=ZooKeeperClientMetrics,name=ZooKeeperRequestLatencyMs",
    "Time from sending a request to the metadata store until its answer.",
)


class ZkRequestSender:
    """Sends requests until the connection holds, under the controller's epoch where asked.

    Thread-safe.

    Ports: kafka.zk.KafkaZkClient (retryRequestsUntilConnected)
    """

    def __init__(self, store: MetadataStore, time: Time, metrics: MetricsRegistry) -> None:
        self._store = store  # constant after construction, like all below
        self._time = time
        self._latency_ms = metrics.histogram(REQUEST_LATENCY_MS)

    def send(
        self, request: Request, expected_controller_epoch_zk_version: int = MATCH_ANY_VERSION
    ) -> Response:
        return self.send_all([request], expected_controller_epoch_zk_version)[0]

    def send_all(
        self,
        requests: Sequence[Request],
        expected_controller_epoch_zk_version: int = MATCH_ANY_VERSION,
    ) -> list[Response]:
        """Responses in the order of the requests, none with CONNECTION_LOSS.

        With a version each write happens only while /controller_epoch has it, and
        ControllerMovedError says that it has not.
        """
        if expected_controller_epoch_zk_version == MATCH_ANY_VERSION:
            return self._send_until_connected(requests)
        if expected_controller_epoch_zk_version < 0:
            raise ValueError(
                f"Controller epoch version {expected_controller_epoch_zk_version} is neither"
                f" a version nor {MATCH_ANY_VERSION} for any"
            )
        check = CheckOp(ControllerEpochZNode.path, expected_controller_epoch_zk_version)
        wrapped = [_checked(request, check) for request in requests]
        return [_unchecked(response) for response in self._send_until_connected(wrapped)]

    def _send_until_connected(self, requests: Sequence[Request]) -> list[Response]:
        responses: dict[int, Response] = {}
        remaining = list(range(len(requests)))
        while remaining:
            start_ms = self._time.hi_res_clock_ms()
            answers = self._store.handle_requests([requests[i] for i in remaining])
            self._latency_ms.update(self._time.hi_res_clock_ms() - start_ms)
            responses.update(zip(remaining, answers, strict=True))
            remaining = [
                i for i in remaining if responses[i].result_code is StoreCode.CONNECTION_LOSS
            ]
            if remaining:
                self._store.wait_until_connected()
        return [responses[i] for i in range(len(requests))]


def _checked(request: Request, check: CheckOp) -> Request:
    match request:
        case CreateRequest() | DeleteRequest() | SetDataRequest():
            return MultiRequest((check, request))
        case MultiRequest(ops):
            return MultiRequest((check, *ops))
        case _:
            return request


def _unchecked(response: Response) -> Response:
    if not response.results:
        return response
    check, *others = response.results
    if check.result_code in (StoreCode.BAD_VERSION, StoreCode.NO_NODE):
        raise ControllerMovedError(
            "The controller epoch in the metadata store differs from this controller's:"
            " another broker is the controller now"
        )
    if len(others) == 1:
        return others[0]
    return Response(response.path, response.result_code, results=tuple(others))
