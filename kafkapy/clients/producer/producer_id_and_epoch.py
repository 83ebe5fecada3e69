"""Who an idempotent producer is."""

from typing import NamedTuple

from kafkapy.common.record.record_batch import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

MAX_PRODUCER_EPOCH = 32767


class ProducerIdAndEpoch(NamedTuple):
    """A producer's id, and which of its incarnations.

    Ports: org.apache.kafka.common.utils.ProducerIdAndEpoch
    """

    producer_id: int
    epoch: int

    @property
    def is_valid(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID


NO_PRODUCER_ID_AND_EPOCH = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
