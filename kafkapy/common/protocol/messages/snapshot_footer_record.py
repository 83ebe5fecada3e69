from __future__ import annotations

from kafkapy.common.protocol.schema import Message, int16


class SnapshotFooterRecord(Message, versions="0", flexible="0+"):
    """The end of a KRaft snapshot, as a control record.

    Ports: org.apache.kafka.common.message.SnapshotFooterRecord
    """

    version: int = int16("0+")
