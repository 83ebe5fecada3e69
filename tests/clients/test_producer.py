"""What a producer writes is what a consumer reads, with every setting that changes how."""

import itertools
import random
import threading
import uuid
from collections import Counter

import pytest
from confluent_kafka import Producer

from kafkapy.clients.producer import KafkaProducer, ProducerInterceptor, RoundRobinPartitioner
from kafkapy.common.errors import KafkaError, RecordTooLargeError
from tests.clients.producers import producer_of, read_back, values_of
from tests.compat.brokers import Broker


def test_record_arrives_with_all_its_parts(broker: Broker, make_topic) -> None:
    topic = make_topic(partitions=3)

    with producer_of(broker) as producer:
        sent = producer.send(
            topic,
            b"value",
            key=b"key",
            headers=[("a", b"1"), ("b", None), ("a", b"2")],
            partition=2,
            timestamp_ms=1_600_000_000_123,
        ).get(timeout=10)

    assert sent == (topic, 2, 0, 1_600_000_000_123, 3, 5)
    (read,) = read_back(broker, topic, partition=2)
    assert (read.key(), read.value(), read.timestamp()[1]) == (b"key", b"value", 1_600_000_000_123)
    assert read.headers() == [("a", b"1"), ("b", None), ("a", b"2")]


@pytest.mark.parametrize(("key", "value"), [(None, None), (b"", b""), (b"k", None), (None, b"v")])
def test_null_and_empty_are_different(
    broker: Broker, make_topic, key: bytes | None, value: bytes | None
) -> None:
    topic = make_topic()

    with producer_of(broker) as producer:
        metadata = producer.send(topic, value, key=key).get(10)

    (read,) = read_back(broker, topic)
    assert (read.key(), read.value()) == (key, value)
    assert metadata.serialized_key_size == (-1 if key is None else len(key))
    assert metadata.serialized_value_size == (-1 if value is None else len(value))


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_keeps_records_and_order(broker: Broker, make_topic, codec: str) -> None:
    topic = make_topic()
    values = [f"{i} ".encode() * 50 for i in range(500)]

    with producer_of(broker, compression_type=codec, linger_ms=10) as producer:
        futures = [producer.send(topic, value) for value in values]
        producer.flush()
        rate = producer.metrics()["producer-metrics"]["compression-rate-avg"]

    assert [future.get(0).offset for future in futures] == list(range(500))
    assert values_of(broker, topic) == values
    assert (rate == 1) == (codec == "none")


@pytest.mark.parametrize("acks", [0, 1, "all", -1])
def test_every_form_of_acks_delivers(broker: Broker, make_topic, acks: int | str) -> None:
    topic = make_topic()

    with producer_of(broker, acks=acks) as producer:
        metadata = producer.send(topic, b"v").get(10)

    assert metadata.has_offset == (acks != 0)
    assert values_of(broker, topic) == [b"v"]


def test_keys_go_where_other_clients_put_them(broker: Broker, make_topic) -> None:
    topic = make_topic(partitions=5)
    keys = [f"key-{i}".encode() * (i % 4 + 1) for i in range(60)]
    theirs: dict[bytes, int] = {}
    other = Producer({"bootstrap.servers": broker.bootstrap, "partitioner": "murmur2_random"})
    for key in keys:
        other.produce(
            topic, b"", key=key, on_delivery=lambda _, m: theirs.update({m.key(): m.partition()})
        )
    other.flush(20)

    with producer_of(broker) as producer:
        sent = {key: producer.send(topic, key=key) for key in keys}
        ours = {key: future.get(10).partition for key, future in sent.items()}

    assert ours == theirs
    assert len(set(ours.values())) == 5


def test_records_without_a_key_are_spread_in_batches(broker: Broker, make_topic) -> None:
    topic = make_topic(partitions=3)

    with producer_of(broker, batch_size=500, linger_ms=5) as producer:
        futures = [producer.send(topic, b"x" * 100) for _ in range(600)]
        partitions = [future.get(10).partition for future in futures]

    changes = sum(a != b for a, b in itertools.pairwise(partitions))
    assert set(partitions) == {0, 1, 2}
    assert 30 < changes < 300


def test_partitioner_may_be_replaced(broker: Broker, make_topic) -> None:
    topic = make_topic(partitions=3)

    with producer_of(broker, partitioner_class=RoundRobinPartitioner()) as producer:
        futures = [producer.send(topic, key=b"same") for _ in range(30)]
        assert Counter(f.get(10).partition for f in futures) == {0: 10, 1: 10, 2: 10}
    with producer_of(broker, partitioner_class=lambda key, every, usable: every[-1]) as producer:
        assert producer.send(topic, key=b"k").get(10).partition == 2
        assert producer.send(topic, key=b"k", partition=0).get(10).partition == 0


def test_callbacks_come_in_order_with_the_outcome(broker: Broker, make_topic) -> None:
    topic = make_topic()
    seen: list[object] = []

    with producer_of(broker) as producer:
        for _ in range(20):
            producer.send(topic, b"v", callback=lambda metadata, error: seen.append(metadata))
        producer.flush()
        done = threading.Event()
        future = producer.send(topic, b"v")
        future.add_callback(lambda mark, metadata: seen.append((mark, metadata.offset)), "mark")
        future.add_errback(seen.append)
        future.add_both(lambda metadata: done.set())
        assert done.wait(10)

    assert [metadata.offset for metadata in seen[:20]] == list(range(20))
    assert seen[20:] == [("mark", 20)]
    assert future.succeeded() and not future.failed() and future.exception is None
    assert future.value.offset == 20


def test_linger_waits_for_more_and_flush_does_not(broker: Broker, make_topic) -> None:
    topic = make_topic()

    with producer_of(broker, linger_ms=60_000) as producer:
        future = producer.send(topic, b"1")
        producer.send(topic, b"2")
        assert not future.is_done
        producer.flush(timeout=10)
        assert future.is_done
        assert producer.metrics()["producer-metrics"]["request-total"] == 1


def test_close_sends_what_was_accepted(broker: Broker, make_topic) -> None:
    topic = make_topic()

    producer = producer_of(broker, linger_ms=60_000)
    futures = [producer.send(topic, b"%d" % i) for i in range(100)]
    producer.close()
    producer.close()

    assert all(future.succeeded() for future in futures)
    assert values_of(broker, topic) == [b"%d" % i for i in range(100)]


def test_close_without_time_gives_up_on_what_is_not_sent(broker: Broker, make_topic) -> None:
    topic = make_topic()

    producer = producer_of(broker, linger_ms=60_000)
    producer.partitions_for(topic)
    future = producer.send(topic, b"v")
    producer.close(timeout=0)

    with pytest.raises(KafkaError, match="closed"):
        future.get(0)
    assert values_of(broker, topic) == []


def test_log_append_time_is_the_brokers(broker: Broker, make_topic) -> None:
    topic = make_topic(config={"message.timestamp.type": "LogAppendTime"})

    with producer_of(broker) as producer:
        metadata = producer.send(topic, b"v", timestamp_ms=1).get(10)

    assert metadata.timestamp > 1_600_000_000_000


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_batch_too_large_for_the_broker_is_split(broker: Broker, make_topic, codec: str) -> None:
    topic = make_topic(config={"max.message.bytes": "3000"})
    values = [random.Random(i).randbytes(300) for i in range(100)]

    with producer_of(
        broker, batch_size=200_000, linger_ms=60_000, compression_type=codec
    ) as producer:
        seen: list[int] = []
        for value in values:
            producer.send(topic, value, callback=lambda metadata, _: seen.append(metadata.offset))
        producer.flush(timeout=20)
        splits = producer.metrics()["producer-metrics"]["batch-split-total"]

    assert splits > 0
    assert seen == list(range(100))
    assert values_of(broker, topic) == values


def test_record_too_large_for_the_topic_fails_alone(broker: Broker, make_topic) -> None:
    topic = make_topic(config={"max.message.bytes": "3000"})

    with producer_of(broker) as producer:
        failed = producer.send(topic, b"x" * 5000)
        with pytest.raises(RecordTooLargeError):
            failed.get(10)
        producer.send(topic, b"small").get(10)

    assert values_of(broker, topic) == [b"small"]


def test_topic_is_created_on_first_use(broker: Broker) -> None:
    with producer_of(broker) as producer:
        assert producer.send(f"first-use-{uuid.uuid4().hex}", b"v").get(20).offset == 0


def test_partitions_of_a_topic_are_known(broker: Broker, make_topic) -> None:
    topic = make_topic(partitions=4)

    with producer_of(broker) as producer:
        assert producer.partitions_for(topic) == {0, 1, 2, 3}
        assert producer.bootstrap_connected()


def test_serializers_turn_objects_into_bytes(broker: Broker, make_topic) -> None:
    class WithTopic:
        def serialize(self, topic, headers, value):
            return f"{topic}/{len(headers)}/{value}".encode()

    topic = make_topic()
    with producer_of(
        broker, key_serializer=lambda key: key.encode(), value_serializer=WithTopic()
    ) as producer:
        producer.send(topic, 7, key="k", headers=[("h", b"")]).get(10)
        producer.send(topic, None).get(10)

    first, second = read_back(broker, topic)
    assert (first.key(), first.value()) == (b"k", f"{topic}/1/7".encode())
    assert (second.key(), second.value()) == (None, None)


def test_closing_in_a_callback_closes_interceptors_once(broker: Broker, make_topic) -> None:
    class Interceptor(ProducerInterceptor):
        closed = 0

        def close(self) -> None:
            self.closed += 1

    interceptor = Interceptor()
    with producer_of(broker, interceptor_classes=[interceptor]) as producer:
        producer.send(make_topic(), b"v", callback=lambda metadata, error: producer.close()).get(10)
        producer._thread.join(10)
        assert interceptor.closed == 1

    assert interceptor.closed == 1


def test_interceptors_see_and_may_change_records(broker: Broker, make_topic) -> None:
    class Interceptor(ProducerInterceptor):
        def __init__(self) -> None:
            self.acknowledged: list[object] = []
            self.is_closed = False

        def on_send(self, record):
            return record._replace(value=record.value + b"!")

        def on_acknowledgement(self, metadata, error):
            self.acknowledged.append(metadata and metadata.offset)

        def close(self):
            self.is_closed = True

    class Broken(ProducerInterceptor):
        def on_send(self, record):
            raise RuntimeError("interceptor")

    topic = make_topic()
    interceptor = Interceptor()
    with producer_of(broker, interceptor_classes=[Broken(), interceptor]) as producer:
        producer.send(topic, b"v").get(10)

    assert values_of(broker, topic) == [b"v!"]
    assert interceptor.acknowledged == [0]
    assert interceptor.is_closed


def test_settings_come_as_properties_too(broker: Broker, make_topic) -> None:
    topic = make_topic()
    properties = {"bootstrap.servers": broker.bootstrap, "linger.ms": "5", "acks": "1"}

    with KafkaProducer(properties=properties, acks="all") as producer:
        producer.send(topic, b"v").get(10)
        assert (producer.config.linger_ms, producer.config.acks) == (5, "all")


def test_many_threads_share_a_producer(broker: Broker, make_topic) -> None:
    topic = make_topic(partitions=2)

    with producer_of(broker, batch_size=1000) as producer:

        def work(name: int) -> None:
            for i in range(200):
                producer.send(topic, f"{name}:{i}".encode(), partition=name % 2)

        threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    for partition in (0, 1):
        values = [v.decode() for v in values_of(broker, topic, partition=partition)]
        for name in (partition, partition + 2):
            mine = [v for v in values if v.startswith(f"{name}:")]
            assert mine == [f"{name}:{i}" for i in range(200)]
