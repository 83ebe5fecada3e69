"""Where the records of an append come from."""

from enum import Enum


class AppendOrigin(Enum):
    """Decides how strictly records are validated.

    Ports: org.apache.kafka.storage.internals.log.AppendOrigin
    """

    REPLICATION = "replication"  # fetched from the leader: offsets and epochs are already assigned
    COORDINATOR = "coordinator"  # written by a group or transaction coordinator
    CLIENT = "client"
    RAFT_LEADER = "raft_leader"
