"""What a fetch asks for."""

from dataclasses import dataclass
from uuid import UUID

from kafkapy.storage.fetch_isolation import FetchIsolation

CONSUMER_REPLICA_ID = -1
DEBUGGING_REPLICA_ID = -2


@dataclass(frozen=True, slots=True)
class ClientMetadata:
    """Who fetches; decides which replica is the preferred one.

    Ports: org.apache.kafka.common.replica.ClientMetadata
    """

    rack_id: str
    client_id: str
    client_address: str
    listener_name: str


@dataclass(frozen=True, slots=True)
class FetchParams:
    """The part of a fetch that is the same for all its partitions.

    Ports: org.apache.kafka.server.storage.log.FetchParams
    """

    request_version: int
    replica_id: int
    replica_epoch: int
    max_wait_ms: int
    min_bytes: int
    max_bytes: int
    isolation: FetchIsolation
    client_metadata: ClientMetadata | None = None

    @property
    def is_from_follower(self) -> bool:
        return self.replica_id >= 0

    @property
    def is_from_consumer(self) -> bool:
        return self.replica_id == CONSUMER_REPLICA_ID

    @property
    def fetch_only_leader(self) -> bool:
        return self.is_from_follower or (self.is_from_consumer and self.client_metadata is None)

    @property
    def hard_max_bytes_limit(self) -> bool:
        """Fetch v0-2: even the first batch must fit."""
        return self.request_version <= 2


@dataclass(frozen=True, slots=True)
class FetchPartitionData:
    """The part of a fetch that is about one partition.

    Ports: org.apache.kafka.common.requests.FetchRequest.PartitionData
    """

    topic_id: UUID
    fetch_offset: int
    log_start_offset: int
    max_bytes: int
    current_leader_epoch: int | None = None
    last_fetched_epoch: int | None = None
