"""The answer to a produce, for one partition."""

from collections.abc import Sequence
from dataclasses import dataclass

from kafkapy.common.errors import Errors
from kafkapy.common.record.record import NO_TIMESTAMP
from kafkapy.storage.log_validator import RecordError

INVALID_OFFSET = -1


@dataclass(slots=True)
class PartitionResponse:
    """Mutable while the produce waits: `error` is what is answered should it time out.

    Ports: org.apache.kafka.common.requests.ProduceResponse.PartitionResponse
    """

    error: Errors
    base_offset: int = INVALID_OFFSET
    last_offset: int = INVALID_OFFSET
    log_append_time_ms: int = NO_TIMESTAMP
    log_start_offset: int = INVALID_OFFSET
    record_errors: Sequence[RecordError] = ()
    error_message: str | None = None
