"""Bad use of a consumer is refused, in words that name what is wrong. No broker is needed."""

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkapy.clients.consumer import (
    ConcurrentModificationError,
    IllegalStateError,
    KafkaConsumer,
    TopicPartition,
    WakeupError,
)
from kafkapy.common.errors import (
    InvalidConfigurationError,
    InvalidGroupIdError,
    InvalidTopicError,
    RequestTimeoutError,
)
from tests.helpers.waiting import wait_until

TP = TopicPartition("t", 0)


@pytest.fixture
def refused_port() -> Iterator[int]:
    """A port at which nobody listens, for as long as it is held here."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@pytest.fixture
def make(refused_port: int) -> Iterator[Callable[..., KafkaConsumer]]:
    made: list[KafkaConsumer] = []

    def consumer(*topics: str, **settings: Any) -> KafkaConsumer:
        defaults = {"bootstrap_servers": f"127.0.0.1:{refused_port}", "retry_backoff_ms": 10}
        made.append(KafkaConsumer(*topics, **{**defaults, **settings}))
        return made[-1]

    yield consumer
    for each in made:
        each.close(0)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"max_poll_record": 5}, "max_poll_record"),
        ({"properties": {"max.poll.record": "5"}}, "max.poll.record"),
        ({"max_poll_records": "many"}, "max.poll.records"),
        ({"max_poll_records": 0}, "max.poll.records"),
        ({"fetch_max_bytes": 2**31}, "fetch.max.bytes"),
        ({"enable_auto_commit": 1}, "enable.auto.commit"),
        ({"auto_offset_reset": "newest"}, "auto.offset.reset"),
        ({"isolation_level": "serializable"}, "isolation.level"),
        ({"value_deserializer": "json"}, "value.deserializer"),
        ({"partition_assignment_strategy": ["best"]}, "partition.assignment.strategy"),
        ({"partition_assignment_strategy": ["range", "range"]}, "partition.assignment.strategy"),
        ({"heartbeat_interval_ms": 50_000}, "heartbeat.interval.ms"),
        ({"security_protocol": "TLS"}, "security.protocol"),
        ({"security_protocol": "SASL_PLAINTEXT"}, "sasl.mechanism"),
        ({"bootstrap_servers": "nowhere"}, "nowhere"),
        ({"bootstrap_servers": []}, "bootstrap.servers"),
        ({"enable_auto_commit": True}, "enable.auto.commit"),
    ],
)
def test_a_wrong_setting_is_named(
    make: Callable[..., KafkaConsumer], settings: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidConfigurationError, match=named.replace(".", r"\.")):
        make(**settings)


def test_settings_come_as_properties_too_and_keywords_win(
    make: Callable[..., KafkaConsumer],
) -> None:
    consumer = make(
        properties={"group.id": "g", "max.poll.records": "7", "fetch.min.bytes": 3},
        max_poll_records=9,
        key_deserializer=None,
    )

    assert consumer.config.group_id == "g"
    assert consumer.config.max_poll_records == 9
    assert consumer.config.fetch_min_bytes == 3


def test_polling_needs_something_to_read(make: Callable[..., KafkaConsumer]) -> None:
    with pytest.raises(IllegalStateError, match="not subscribed"):
        make().poll(0)


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.poll(-1),
        lambda c: c.close(-1),
        lambda c: c.position(TP, timeout_ms=-1),
        lambda c: c.poll(0, max_records=0),
        lambda c: c.seek(TP, -1),
        lambda c: c.commit_sync({TP: -5}),
        lambda c: c.offsets_for_times({TP: -1}),
        lambda c: c.subscribe([" "]),
        lambda c: c.subscribe(["a"], pattern="b"),
        lambda c: c.assign([TopicPartition("", 0)]),
    ],
)
def test_values_that_make_no_sense_are_refused(
    make: Callable[..., KafkaConsumer], call: Callable[[KafkaConsumer], object]
) -> None:
    consumer = make(group_id="g")
    consumer.assign([TP])

    with pytest.raises(ValueError):
        call(consumer)


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.subscribe("topic"),
        lambda c: c.subscribe([3]),
        lambda c: c.subscribe(["a"], listener=object()),
        lambda c: c.assign([("t", 0)]),
        lambda c: c.pause("t"),
    ],
)
def test_values_of_the_wrong_type_are_refused(
    make: Callable[..., KafkaConsumer], call: Callable[[KafkaConsumer], object]
) -> None:
    with pytest.raises(TypeError):
        call(make(group_id="g"))


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.subscribe(["t"]),
        lambda c: c.commit_sync(),
        lambda c: c.commit_async(),
        lambda c: c.committed(TP),
        lambda c: c.group_metadata(),
        lambda c: c.enforce_rebalance(),
    ],
)
def test_what_needs_a_group_says_so(
    make: Callable[..., KafkaConsumer], call: Callable[[KafkaConsumer], object]
) -> None:
    with pytest.raises(InvalidGroupIdError, match=r"group\.id"):
        call(make())


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.position(TP),
        lambda c: c.seek(TP, 0),
        lambda c: c.pause(TP),
        lambda c: c.seek_to_end(TP),
        lambda c: c.highwater(TP),
    ],
)
def test_a_partition_that_is_not_assigned_is_named(
    make: Callable[..., KafkaConsumer], call: Callable[[KafkaConsumer], object]
) -> None:
    with pytest.raises(IllegalStateError, match="t-0"):
        call(make())


def test_a_closed_consumer_refuses_everything_but_closing(
    make: Callable[..., KafkaConsumer],
) -> None:
    consumer = make(group_id="g")
    consumer.assign([TP])
    consumer.close(0)
    consumer.close()

    for call in (
        lambda: consumer.poll(0),
        lambda: consumer.subscribe(["t"]),
        lambda: consumer.commit_sync(),
        lambda: next(consumer),
        lambda: consumer.topics(),
    ):
        with pytest.raises(IllegalStateError, match="closed"):
            call()


def test_a_constructor_that_fails_leaves_nothing_open(
    make: Callable[..., KafkaConsumer],
) -> None:
    with pytest.raises(InvalidGroupIdError):
        make("topic")


def test_a_second_thread_is_refused_while_one_polls(make: Callable[..., KafkaConsumer]) -> None:
    consumer = make()
    consumer.assign([TP])
    ended: list[BaseException] = []

    def poll() -> None:
        try:
            consumer.poll(60_000)
        except WakeupError as error:
            ended.append(error)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        wait_until(lambda: consumer._guard._owner is not None)
        with pytest.raises(ConcurrentModificationError):
            consumer.assignment()
        with pytest.raises(ConcurrentModificationError):
            consumer.close(0)
    finally:
        consumer.wakeup()
        thread.join()
    assert len(ended) == 1
    assert consumer.assignment() == {TP}


@pytest.mark.parametrize(
    "call",
    [
        lambda c: c.position(TP, timeout_ms=150),
        lambda c: c.topics(),
        lambda c: c.partitions_for("t", timeout_ms=150),
        lambda c: c.end_offsets([TP], timeout_ms=150),
        lambda c: c.commit_sync({TP: 1}, timeout_ms=150),
        lambda c: c.committed(TP, timeout_ms=150),
    ],
)
def test_a_broker_that_cannot_be_reached_is_named_after_the_configured_time(
    make: Callable[..., KafkaConsumer],
    refused_port: int,
    call: Callable[[KafkaConsumer], object],
) -> None:
    consumer = make(group_id="g", default_api_timeout_ms=150)
    consumer.assign([TP])

    with pytest.raises(RequestTimeoutError, match=f"150 ms.*127.0.0.1:{refused_port}"):
        call(consumer)


def test_polling_a_broker_that_cannot_be_reached_returns_nothing(
    make: Callable[..., KafkaConsumer],
) -> None:
    consumer = make("t", group_id="g")

    assert consumer.poll(100) == {}


def test_iterating_ends_after_the_configured_time(make: Callable[..., KafkaConsumer]) -> None:
    consumer = make(consumer_timeout_ms=100)
    consumer.assign([TP])

    assert list(consumer) == []


def test_leaving_a_with_block_closes(make: Callable[..., KafkaConsumer]) -> None:
    with make() as consumer:
        pass

    with pytest.raises(IllegalStateError, match="closed"):
        consumer.assignment()


@pytest.mark.parametrize(
    "use",
    [
        lambda consumer: consumer.subscribe(["\ud800"]),
        lambda consumer: consumer.assign([TopicPartition("\ud800", 0)]),
        lambda consumer: consumer.partitions_for("\ud800"),
        lambda consumer: consumer.end_offsets([TopicPartition("\ud800", 0)]),
        lambda consumer: consumer.offsets_for_times({TopicPartition("\ud800", 0): 0}),
    ],
)
def test_a_topic_that_cannot_be_encoded_is_refused(
    make: Callable[..., KafkaConsumer], use: Callable[[KafkaConsumer], object]
) -> None:
    with pytest.raises(InvalidTopicError, match="not legal"):
        use(make(group_id="g", default_api_timeout_ms=100))


def test_an_offset_beyond_64_bits_is_refused(make: Callable[..., KafkaConsumer]) -> None:
    consumer = make(group_id="g")
    consumer.assign([TP])

    with pytest.raises(ValueError, match="64 bits"):
        consumer.seek(TP, 2**63)
    with pytest.raises(ValueError, match="64 bits"):
        consumer.commit_async({TP: 2**63})
