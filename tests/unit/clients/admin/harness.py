"""An admin client's machinery over a network that the test plays."""

from __future__ import annotations

from collections.abc import Sequence

from kafkapy.clients.admin.admin_calls import AdminCalls
from kafkapy.clients.admin.admin_client_config import AdminClientConfig
from kafkapy.clients.admin.admin_metadata import AdminMetadata
from kafkapy.clients.api_versions import NodeApiVersions
from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.find_coordinator import FindCoordinatorResponse
from kafkapy.common.protocol.messages.list_offsets import ListOffsetsResponse
from kafkapy.common.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.metadata.broker import Node
from tests.helpers.mock_time import MockTime
from tests.unit.clients.metadata_responses import metadata_response
from tests.unit.clients.mock_client import MockClient

TICK_MS = 5
TIMEOUT_MS = 10_000
BACKOFF_MS = 100


class AdminHarness:
    """Three brokers, of which 0 is the controller. Waiting moves the clock on."""

    def __init__(self, **settings: int) -> None:
        self.time = MockTime()
        self.metadata = AdminMetadata(
            refresh_backoff_ms=10, refresh_backoff_max_ms=10, metadata_expire_ms=10**9
        )
        self.client = MockClient(self.time, self.metadata, tick_ms=TICK_MS)
        self.client.update_metadata(metadata_response(brokers=3))
        config = AdminClientConfig(
            bootstrap_servers=("unused:1",),
            default_api_timeout_ms=TIMEOUT_MS,
            retry_backoff_ms=BACKOFF_MS,
            **settings,
        )
        self.calls = AdminCalls(config, self.time, self.client, self.metadata)

    def broker_has(self, api: ApiKeys, *, at_most: int | None) -> None:
        """Every broker has the API up to this version; None: not at all."""
        ranges = {int(a): (int(a), a.min_version, a.max_version) for a in ApiKeys}
        if at_most is None:
            del ranges[api]
        else:
            ranges[api] = (api, api.min_version, at_most)
        self.client.set_api_versions(NodeApiVersions(ranges.values()))

    def requests_of(self, cls: type[Message]) -> list[Message]:
        return [request for request in self.client.requests if isinstance(request, cls)]

    def prepare(self, message: Message, node_id: int | None = None) -> None:
        node = None if node_id is None else Node(node_id, "127.0.0.1", 1000 + node_id)
        self.client.prepare_response(message, node=node)

    def prepare_leaders(self, *leaders: int) -> None:
        """Partition p of topic "t" is led by the p-th of these; asked of any broker."""
        self.client.prepare_response(
            metadata_response(
                {"t": len(leaders)},
                brokers=3,
                leaders={("t", p): leader for p, leader in enumerate(leaders)},
            ),
            matcher=lambda request: isinstance(request, MetadataRequest),
        )


def offsets_response(*partitions: tuple[int, int | Errors]) -> ListOffsetsResponse:
    """Of topic "t": (partition, offset or error)."""
    return ListOffsetsResponse(
        topics=[
            ListOffsetsResponse.ListOffsetsTopicResponse(
                name="t",
                partitions=[
                    ListOffsetsResponse.ListOffsetsPartitionResponse(
                        partition_index=index,
                        error_code=outcome.code if isinstance(outcome, Errors) else 0,
                        offset=-1 if isinstance(outcome, Errors) else outcome,
                    )
                    for index, outcome in partitions
                ],
            )
        ]
    )


def coordinators_response(
    keys: Sequence[str], node_id: int, error: Errors = Errors.NONE
) -> FindCoordinatorResponse:
    return FindCoordinatorResponse(
        coordinators=[
            FindCoordinatorResponse.Coordinator(
                key=key, node_id=node_id, host="127.0.0.1", port=1, error_code=error.code
            )
            for key in keys
        ]
    )


def controller_is(node_id: int) -> MetadataResponse:
    return metadata_response(brokers=3, controller_id=node_id)
