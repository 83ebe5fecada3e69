"""Topics filled for queries to read."""

from collections.abc import Iterable

from kafkapy.clients.producer import KafkaProducer
from kafkapy.testing.broker_process import BrokerProcess
from tests.helpers.ended_transactions import await_ended_transactions

# For records with times long past, which a broker would delete.
KEPT = {"retention.ms": "-1"}


def produce(
    broker: BrokerProcess,
    topic: str,
    values: Iterable[bytes | None],
    *,
    partition: int = 0,
    timestamp_ms: int | None = None,
) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for value in values:
            producer.send(topic, value=value, partition=partition, timestamp_ms=timestamp_ms)
        producer.flush()


def numbers(start: int, end: int) -> list[bytes]:
    return [b"%d" % number for number in range(start, end)]


def mixed_records(broker: BrokerProcess, topic: str) -> None:
    """Keys, nulls, headers, codecs, times out of order, and transactions ended and open.

    In partition 0 there are plain records of four codecs; in partition 1 a committed and an aborted
    transaction, both ended, with plain records between.
    """
    servers = broker.bootstrap_servers
    for index, codec in enumerate(("none", "gzip", "snappy", "lz4", "zstd")):
        with KafkaProducer(bootstrap_servers=servers, compression_type=codec) as producer:
            for number in range(20):
                producer.send(
                    topic,
                    key=None if number % 3 == 0 else b"key-%d" % number,
                    value=None if number % 7 == 0 else b"%s-%d" % (codec.encode(), number),
                    headers=[("a", b"%d" % number), ("b", None)] if number % 5 == 0 else None,
                    partition=0,
                    timestamp_ms=1_700_000_000_000 + 1_000 * index - number,
                )
            producer.flush()
    for name in ("committed", "aborted"):
        produce(broker, topic, [b"before " + name.encode()], partition=1, timestamp_ms=10)
        with KafkaProducer(bootstrap_servers=servers, transactional_id=f"{topic}-{name}") as tx:
            tx.init_transactions()
            tx.begin_transaction()
            for number in range(10):
                tx.send(
                    topic,
                    b"%s-%d" % (name.encode(), number),
                    partition=1,
                    timestamp_ms=1_700_000_002_500,
                )
            tx.flush()
            if name == "committed":
                tx.commit_transaction()
            else:
                tx.abort_transaction()
        await_ended_transactions(servers)
    produce(broker, topic, [b"after"], partition=1, timestamp_ms=1_700_000_003_000)
