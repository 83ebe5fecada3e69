from __future__ import annotations

from kafkapy.clients.client_request import VersionedRequest
from kafkapy.clients.metadata import Metadata, metadata_request_for


class AdminMetadata(Metadata):
    """The brokers and the controller; topics are asked about when a call needs them. Thread-safe.

    Ports: org.apache.kafka.clients.admin.internals.AdminMetadataManager
    """

    def new_request(self) -> VersionedRequest:
        return metadata_request_for((), allow_auto_topic_creation=True)
