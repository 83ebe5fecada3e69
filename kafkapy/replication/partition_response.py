"""The answer to a produce, for one partition."""

from collections.abc import Sequence
from typing import Final

from kafkapy.common.errors import Errors
from kafkapy.common.record.record import NO_TIMESTAMP
from kafkapy.storage.log_validator import RecordError

INVALID_OFFSET: Final = -1


class PartitionResponse:
    """Mutable while the produce waits: `error` is what is answered should it time out.

    A plain class: one is made per partition and request, which compiled costs next to nothing.

    Ports: org.apache.kafka.common.requests.ProduceResponse.PartitionResponse
    """

    __slots__ = (
        "base_offset",
        "error",
        "error_message",
        "last_offset",
        "log_append_time_ms",
        "log_start_offset",
        "record_errors",
    )

    def __init__(
        self,
        error: Errors,
        base_offset: int = INVALID_OFFSET,
        last_offset: int = INVALID_OFFSET,
        log_append_time_ms: int = NO_TIMESTAMP,
        log_start_offset: int = INVALID_OFFSET,
        record_errors: Sequence[RecordError] = (),
        error_message: str | None = None,
    ) -> None:
        self.error = error
        self.base_offset = base_offset
        self.last_offset = last_offset
        self.log_append_time_ms = log_append_time_ms
        self.log_start_offset = log_start_offset
        self.record_errors = record_errors
        self.error_message = error_message
