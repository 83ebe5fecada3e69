from __future__ import annotations

from kafkapy.common.protocol.schema import Message, int16, int64


class SnapshotHeaderRecord(Message, versions="0", flexible="0+"):
    """The start of a KRaft snapshot, as a control record.

    Ports: org.apache.kafka.common.message.SnapshotHeaderRecord
    """

    version: int = int16("0+")
    last_contained_log_timestamp: int = int64("0+")
