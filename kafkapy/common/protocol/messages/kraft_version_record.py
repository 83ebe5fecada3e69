from __future__ import annotations

from kafkapy.common.protocol.schema import Message, int16


class KRaftVersionRecord(Message, versions="0", flexible="0+"):
    """The KRaft version of a metadata log, as a control record.

    Ports: org.apache.kafka.common.message.KRaftVersionRecord
    """

    version: int = int16("0+")
    kraft_version: int = int16("0+")
