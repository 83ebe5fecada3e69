"""Keys and values into bytes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from kafkapy.clients.client_errors import SerializationError
from kafkapy.clients.producer.producer_record import HeaderLike
from kafkapy.common.record.record import Header

Serialize: TypeAlias = Callable[[str, Sequence[HeaderLike], Any], bytes | None]
_BYTES_LIKE = (bytes, bytearray, memoryview)


@runtime_checkable
class TopicSerializer(Protocol):
    """A serializer that also looks at the topic and the headers.

    Ports: org.apache.kafka.common.serialization.Serializer
    """

    def serialize(self, topic: str, headers: Sequence[HeaderLike], value: Any) -> bytes | None: ...


# A function of the value, or such an object.
Serializer: TypeAlias = Callable[[Any], bytes | None] | TopicSerializer


def serialize_function(serializer: Serializer | None, what: str) -> Serialize:
    """A function of topic, headers and key or value.

    Null stays null. SerializationError names what went wrong.
    """
    if serializer is None:
        return lambda topic, headers, value: _as_bytes(topic, value, what)

    def serialize(topic: str, headers: Sequence[HeaderLike], value: Any) -> bytes | None:
        if value is None:
            return None
        try:
            if isinstance(serializer, TopicSerializer):
                serialized = serializer.serialize(topic, headers, value)
            else:
                serialized = serializer(value)
        except Exception as error:
            raise SerializationError(
                f"The {what} of a record for {topic} cannot be serialized: {error!r}"
            ) from error
        return _as_bytes(topic, serialized, what)

    return serialize


def checked_headers(topic: str, headers: Sequence[HeaderLike]) -> tuple[Header, ...]:
    checked = []
    for key, value in headers:
        if not isinstance(key, str) or not isinstance(value, bytes | None):
            raise SerializationError(
                f"A header of a record for {topic} must be a str and bytes or None, not"
                f" {type(key).__name__} and {type(value).__name__}"
            )
        checked.append(Header(key, value))
    return tuple(checked)


def _as_bytes(topic: str, value: Any, what: str) -> bytes | None:
    if value is None or type(value) is bytes:
        return value
    if isinstance(value, _BYTES_LIKE):
        return bytes(value)
    raise SerializationError(
        f"The {what} of a record for {topic} is {type(value).__name__}, not bytes:"
        f" give the producer a {what}_serializer"
    )
