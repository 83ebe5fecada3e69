from __future__ import annotations

from kafkapy.common.protocol.schema import Message, Struct, array, int8, int16, int32, int64, uint16


class ShareUpdateValue(Message, versions="0", flexible="0+"):
    """A change to a share partition in `__share_group_state`.

    Ports: org.apache.kafka.coordinator.share.generated.ShareUpdateValue
    """

    class StateBatch(Struct):
        first_offset: int = int64("0")
        last_offset: int = int64("0")
        delivery_state: int = int8("0")
        delivery_count: int = int16("0")

    snapshot_epoch: int = uint16("0")
    leader_epoch: int = int32("0+")
    start_offset: int = int64("0")
    state_batches: list[StateBatch] = array("StateBatch", "0")
