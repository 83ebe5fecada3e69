"""The brokers: who they are, what they support, what is on their disks."""

from __future__ import annotations

from kafkapy.clients.admin.admin_api_handler import SingleHandler
from kafkapy.clients.admin.lookup_strategy import at_any_broker
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.clients.metadata import metadata_request_for
from kafkapy.common.protocol.messages.metadata import MetadataResponse


class BrokersHandler(SingleHandler[list[int], MetadataResponse]):
    """The ids of the brokers that are up."""

    call_name = "list_brokers"

    def __init__(self) -> None:
        super().__init__(at_any_broker())

    def build(self, timeout_ms: int) -> VersionedRequest:
        return metadata_request_for((), allow_auto_topic_creation=True)

    def read(self, response: MetadataResponse) -> list[int]:
        return sorted(broker.node_id for broker in response.brokers)
