from __future__ import annotations

from kafkapy.common.protocol.schema import Message, int32, int64, string


class OffsetCommitValue(Message, versions="0-4", flexible="4+"):
    """A committed offset in `__consumer_offsets`.

    Ports: org.apache.kafka.coordinator.group.generated.OffsetCommitValue
    """

    offset: int = int64("0+")
    leader_epoch: int = int32("3+", default=-1, ignorable=True)
    metadata: str = string("0+")
    commit_timestamp: int = int64("0+")
    expire_timestamp: int = int64("1", default=-1, ignorable=True)
