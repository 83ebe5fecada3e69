"""Wrong use of a producer is refused at once, by name."""

import socket
import threading

import pytest

from kafkapy.clients.client_errors import IllegalStateError, SerializationError
from kafkapy.clients.producer import KafkaProducer
from kafkapy.clients.producer.buffer_pool import BufferExhaustedError
from kafkapy.common.errors import (
    InvalidConfigurationError,
    InvalidTopicError,
    RecordTooLargeError,
    RequestTimeoutError,
)
from tests.clients.producers import producer_of
from tests.compat.brokers import Broker

SERVER = "127.0.0.1:9092"


@pytest.mark.parametrize(
    ("settings", "complaint"),
    [
        ({}, "bootstrap.servers"),
        ({"bootstrap_servers": SERVER, "lingerms": 5}, "lingerms"),
        ({"bootstrap_servers": SERVER, "linger_ms": "soon"}, "linger.ms"),
        ({"bootstrap_servers": SERVER, "linger_ms": -1}, "linger.ms"),
        ({"bootstrap_servers": SERVER, "linger_ms": 1.5}, "linger.ms"),
        ({"bootstrap_servers": SERVER, "linger_ms": True}, "linger.ms"),
        ({"bootstrap_servers": SERVER, "request_timeout_ms": 2**31}, "request.timeout.ms.*32 bits"),
        ({"bootstrap_servers": SERVER, "linger_ms": 2**63}, "linger.ms.*64 bits"),
        ({"bootstrap_servers": SERVER, "acks": "some"}, "acks"),
        ({"bootstrap_servers": SERVER, "compression_type": "brotli"}, "compression.type"),
        ({"bootstrap_servers": SERVER, "compression_gzip_level": 0}, "compression.gzip.level"),
        ({"bootstrap_servers": SERVER, "key_serializer": "java.Class"}, "key.serializer"),
        ({"bootstrap_servers": SERVER, "security_protocol": "TLS"}, "security.protocol"),
        ({"bootstrap_servers": SERVER, "security_protocol": "SASL_SSL"}, "sasl.mechanism"),
        ({"bootstrap_servers": "localhost"}, "localhost"),
        ({"bootstrap_servers": "localhost:99999"}, "localhost:99999"),
        ({"bootstrap_servers": "host.invalid:9092"}, "host.invalid"),
        ({"bootstrap_servers": SERVER, "enable_idempotence": True, "acks": 1}, "acks"),
        ({"bootstrap_servers": SERVER, "enable_idempotence": True, "retries": 0}, "retries"),
        ({"bootstrap_servers": SERVER, "transactional_id": "t", "acks": 1}, "transactional.id"),
        (
            {"bootstrap_servers": SERVER, "delivery_timeout_ms": 1000},
            "delivery.timeout.ms: must be at least",
        ),
        ({"properties": {"bootstrap.servers": SERVER, "no.such": 1}}, "no.such"),
    ],
)
def test_bad_setting_is_named(settings: dict[str, object], complaint: str) -> None:
    threads = threading.active_count()

    with pytest.raises(InvalidConfigurationError, match=complaint):
        KafkaProducer(**settings)

    assert threading.active_count() == threads


def test_idempotence_that_was_not_asked_for_gives_way(broker: Broker) -> None:
    with producer_of(broker, acks=1) as producer:
        assert not producer.config.enable_idempotence
    with producer_of(broker, max_in_flight_requests_per_connection=6) as producer:
        assert not producer.config.enable_idempotence
    with producer_of(broker) as producer:
        assert producer.config.enable_idempotence


def test_closed_producer_is_refused(broker: Broker, make_topic) -> None:
    producer = producer_of(broker)
    producer.close()

    for use in (
        lambda: producer.send("t", b"v"),
        lambda: producer.flush(),
        lambda: producer.partitions_for("t"),
        lambda: producer.init_transactions(),
    ):
        with pytest.raises(IllegalStateError, match="closed"):
            use()


def test_negative_numbers_are_refused(broker: Broker, make_topic) -> None:
    topic = make_topic()
    with producer_of(broker) as producer:
        with pytest.raises(ValueError, match="negative"):
            producer.close(timeout=-1)
        with pytest.raises(ValueError, match="negative"):
            producer.flush(timeout=-1)
        with pytest.raises(ValueError, match="negative"):
            producer.send(topic, b"v", partition=-1)
        with pytest.raises(ValueError, match="negative"):
            producer.send(topic, b"v", timestamp_ms=-5)


@pytest.mark.parametrize(
    ("number", "refusal"),
    [
        ({"timestamp_ms": 1.5e12}, TypeError),
        ({"timestamp_ms": 2**63}, ValueError),
        ({"partition": 0.0}, TypeError),
    ],
)
def test_number_that_no_record_can_have_is_refused_and_leaves_nothing_behind(
    broker: Broker, make_topic, number: dict[str, object], refusal: type[Exception]
) -> None:
    topic = make_topic()
    with producer_of(broker) as producer:
        with pytest.raises(refusal):
            producer.send(topic, b"v", **number)

        producer.send(topic, b"v").get(10)
        producer.flush(10)
        assert producer.metrics()["producer-metrics"]["buffer-available-bytes"] == 32 * 2**20


def test_partitioner_that_chooses_no_number_is_refused(broker: Broker, make_topic) -> None:
    topic = make_topic(partitions=2)
    with producer_of(broker, partitioner_class=lambda key, every, available: 0.5) as producer:
        with pytest.raises(TypeError):
            producer.send(topic, b"v")
        producer.flush(10)


def test_record_over_max_request_size_fails(broker: Broker, make_topic) -> None:
    topic = make_topic()
    outcome: list[object] = []

    with producer_of(broker, max_request_size=1000) as producer:
        future = producer.send(topic, b"x" * 1000, callback=lambda m, error: outcome.append(error))
        with pytest.raises(RecordTooLargeError, match=r"max\.request\.size"):
            future.get(0)
        assert isinstance(outcome[0], RecordTooLargeError)
        with pytest.raises(RecordTooLargeError):
            producer.send(topic, b"", headers=[("h", b"x" * 1000)]).get(0)
        producer.send(topic, b"x" * 800).get(10)
    with (
        producer_of(broker, buffer_memory=1000) as producer,
        pytest.raises(RecordTooLargeError, match=r"buffer\.memory"),
    ):
        producer.send(topic, b"x" * 1000).get(0)


def test_full_buffer_fails_after_max_block_ms(broker: Broker, make_topic) -> None:
    topic = make_topic()

    with producer_of(
        broker, buffer_memory=2000, batch_size=900, linger_ms=60_000, max_block_ms=20_000
    ) as producer:
        producer.partitions_for(topic)
    producer = producer_of(
        broker, buffer_memory=2000, batch_size=900, linger_ms=60_000, max_block_ms=200
    )
    # Nothing can be sent, so nothing becomes free.
    producer._accumulator.mute_partition((topic, 0))
    try:
        futures = [producer.send(topic, b"x" * 700) for _ in range(3)]
        with pytest.raises(BufferExhaustedError, match=r"buffer\.memory.*200 ms"):
            futures[-1].get(0)
    finally:
        producer._accumulator.unmute_partition((topic, 0))
        producer.close()


def test_unreachable_broker_is_named_after_max_block_ms() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with KafkaProducer(bootstrap_servers=f"127.0.0.1:{port}", max_block_ms=300) as producer:
        future = producer.send("topic", b"v")

        with pytest.raises(RequestTimeoutError, match=rf"300 ms: 127\.0\.0\.1:{port}"):
            future.get(0)
        assert not producer.bootstrap_connected()


def test_partition_that_does_not_exist_fails_after_max_block_ms(broker: Broker, make_topic) -> None:
    topic = make_topic(partitions=2)
    with (
        producer_of(broker, max_block_ms=300) as producer,
        pytest.raises(RequestTimeoutError, match=f"Partition 2 of topic {topic}, which has 2"),
    ):
        producer.send(topic, b"v", partition=2).get(0)


def test_illegal_topic_name_fails(broker: Broker) -> None:
    with producer_of(broker) as producer, pytest.raises(InvalidTopicError):
        producer.send("no spaces", b"v").get(0)


@pytest.mark.parametrize("name", [None, 5, b"topic"])
def test_topic_that_is_no_text_is_refused_and_stops_no_other(
    broker: Broker, make_topic, name: object
) -> None:
    topic = make_topic()
    with producer_of(broker, max_block_ms=5_000) as producer:
        with pytest.raises(TypeError, match="a topic is a str"):
            producer.send(name, b"v")  # type: ignore[arg-type]
        producer.send(topic, b"v").get(10)


def test_topic_that_cannot_be_encoded_fails_and_stops_no_other(broker: Broker, make_topic) -> None:
    topic = make_topic()
    with producer_of(broker, max_block_ms=5_000) as producer:
        with pytest.raises(InvalidTopicError):
            producer.send("\ud800", b"v").get(0)
        producer.send(topic, b"v").get(10)


def test_value_that_is_not_bytes_needs_a_serializer(broker: Broker, make_topic) -> None:
    topic = make_topic()
    with producer_of(broker) as producer:
        with pytest.raises(SerializationError, match=r"str.*value_serializer"):
            producer.send(topic, "text")
        with pytest.raises(SerializationError, match=r"int.*key_serializer"):
            producer.send(topic, b"v", key=7)
        with pytest.raises(SerializationError, match="header"):
            producer.send(topic, b"v", headers=[("h", "text")])
        producer.send(topic, bytearray(b"v"), key=memoryview(b"k")).get(10)
        producer.send(topic, type("Text", (bytes,), {})(b"v")).get(10)
    with (
        producer_of(broker, value_serializer=lambda v: v.encode()) as producer,
        pytest.raises(SerializationError, match="cannot be serialized"),
    ):
        producer.send(topic, 7)


def test_flush_in_a_callback_is_refused(broker: Broker, make_topic) -> None:
    topic = make_topic()
    seen: list[object] = []

    with producer_of(broker, linger_ms=50) as producer:

        def callback(metadata: object, error: object) -> None:
            try:
                producer.flush()
            except IllegalStateError as refused:
                seen.append(refused)

        producer.send(topic, b"v", callback=callback)

    assert len(seen) == 1
