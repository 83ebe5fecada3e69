"""One request of an admin client, to be sent once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kafkapy.clients.admin.node_provider import NodeProvider
from kafkapy.clients.client_request import VersionedRequest
from kafkapy.common.errors import KafkaError
from kafkapy.common.protocol.schema import Message
from kafkapy.metadata.broker import Node

ALREADY = -1


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A request, where and when it is to go, and who hears what became of it.

    Exactly one of `on_response` and `on_failure` is called, on the thread that polls. Trying again
    is a matter of another Call.

    Ports: org.apache.kafka.clients.admin.KafkaAdminClient.Call
    """

    name: str
    node_provider: NodeProvider
    build_request: Callable[[int], VersionedRequest]  # of the ms that the broker may take
    on_response: Callable[[Node, Message], None]
    on_failure: Callable[[KafkaError], None]
    is_wanted: Callable[[], bool]  # False once nobody waits for it any more
    deadline_ms: int
    not_before_ms: int = 0
    after_metadata_version: int = ALREADY  # the metadata must be newer than this
