"""What every client has to get through a broker unharmed, in one table for all of them."""

import random
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import Enum, auto

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
"""In the order of their wire ids."""

BULK_RECORDS = 10_000
BULK_PARTITIONS = 6
MEGABYTE = 1_000_000

# An hour back: older than "now", yet far from every retention default.
BASE_TIMESTAMP_MS = int(time.time() * 1000) - 3_600_000


class Can(Enum):
    """What a client's interface can express; a sample that needs more is left out for it."""

    BINARY = auto()
    EMPTY = auto()
    NULL_VALUE = auto()
    HEADERS = auto()
    HEADER_ORDER = auto()
    NULL_HEADER = auto()
    TIMESTAMPS = auto()
    IDEMPOTENCE = auto()


EVERYTHING = frozenset(Can)


@dataclass(frozen=True, slots=True)
class Message:
    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int | None = None
    partition: int = 0


_SAMPLES: tuple[tuple[Message, frozenset[Can]], ...] = (
    (Message(b"plain", b"key"), frozenset()),
    (Message(b"no key"), frozenset()),
    (Message(None, b"tombstone"), frozenset({Can.NULL_VALUE})),
    (Message(b"", b""), frozenset({Can.EMPTY})),
    (Message("größer, 大きい".encode(), "schlüssel".encode()), frozenset()),
    (Message(bytes(range(256)), b"\x00\xff"), frozenset({Can.BINARY})),
    (Message(b"one header", b"h1", (("trace", b"abc"),)), frozenset({Can.HEADERS})),
    (
        Message(b"repeated header", b"h2", (("a", b"1"), ("a", b"again"), ("b", b"2"))),
        frozenset({Can.HEADERS}),
    ),
    (
        Message(b"ordered headers", b"h3", (("a", b"1"), ("b", b"2"), ("a", b"again"))),
        frozenset({Can.HEADERS, Can.HEADER_ORDER}),
    ),
    (
        Message(b"odd headers", None, (("bytes", b"\x00\x80\xff"), ("empty", b""))),
        frozenset({Can.HEADERS, Can.BINARY, Can.EMPTY}),
    ),
    (Message(b"null header", b"h4", (("none", None),)), frozenset({Can.HEADERS, Can.NULL_HEADER})),
    # Long and repetitive: librdkafka sends a batch plain when compression does not make it smaller.
    *((Message(b"compressible " * 40, b"filler-%d" % i), frozenset()) for i in range(20)),
)


def samples(can: Collection[Can]) -> list[Message]:
    """The samples a client can express, a millisecond apart if it can set timestamps."""
    fitting = [message for message, needs in _SAMPLES if needs <= set(can)]
    if Can.TIMESTAMPS not in can:
        return fitting
    return [replace(m, timestamp_ms=BASE_TIMESTAMP_MS + i) for i, m in enumerate(fitting)]


def numbered(count: int, *, first: int = 0, partitions: int = 1) -> list[Message]:
    """Messages `first`, `first + 1`, … dealt to the partitions in turn."""
    return [
        Message(b"value-%d" % i, b"key-%d" % i, partition=i % partitions)
        for i in range(first, first + count)
    ]


def megabyte() -> Message:
    """Text, so that any client can say it; of random words, so that no codec makes it small."""
    # Few words: librdkafka sends a batch plain when compression does not make it smaller.
    letters = random.Random(1)
    words = [bytes(letters.choices(b"abcdefghijklmnopqrstuvwxyz", k=10)) for _ in range(5000)]
    return Message(b"".join(letters.choices(words, k=MEGABYTE // 10)), b"big")


def assert_received(got: Sequence[Message], sent: Sequence[Message]) -> None:
    """`got` is `sent` in order; where `sent` left the time to the client, any recent one fits."""
    assert len(got) == len(sent)
    for actual, expected in zip(got, sent, strict=True):
        if expected.timestamp_ms is None:
            assert actual.timestamp_ms is not None
            assert actual.timestamp_ms > BASE_TIMESTAMP_MS
            actual = replace(actual, timestamp_ms=None)
        # Not one comparison of the lists: pytest's diff of two megabytes takes minutes.
        assert actual == expected
