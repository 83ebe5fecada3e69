"""Values in the words in which Kafka's tools print them."""

from kafkapy.common.record.record import TimestampType

_TIMESTAMP_TYPES = {
    TimestampType.NO_TIMESTAMP_TYPE: "NoTimestampType",
    TimestampType.CREATE_TIME: "CreateTime",
    TimestampType.LOG_APPEND_TIME: "LogAppendTime",
}


def timestamp_type(value: TimestampType) -> str:
    return _TIMESTAMP_TYPES[value]


def boolean(value: bool) -> str:
    return "true" if value else "false"


def is_true(text: str) -> bool:
    """Everything else is false."""
    return text.strip().lower() == "true"


def optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
