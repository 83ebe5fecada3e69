"""kafka-console-consumer beside Apache Kafka's, on the same records."""

import struct
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.clients.consumer import KafkaConsumer, TopicPartition
from kafkapy.clients.producer import KafkaProducer
from kafkapy.utils.java_hash import java_partition_for
from tests.compat.apache_tools import ApacheTools
from tests.compat.brokers import Broker
from tests.compat.contract import MakeTopic
from tests.compat.outcome import run_ours
from tests.tools.compare.conftest import Compare

_INTERNAL_PARTITIONS = 50
_TIMESTAMP = 1_700_000_000_000
_EVERYTHING = tuple(
    word
    for part in ("timestamp", "partition", "offset", "headers", "key")
    for word in ("--property", f"print.{part}=true")
)


@pytest.fixture
def producer(broker: Broker) -> Iterator[KafkaProducer]:
    with KafkaProducer(bootstrap_servers=broker.bootstrap) as producer:
        yield producer


@pytest.fixture
def topic(make_topic: MakeTopic, producer: KafkaProducer) -> str:
    name = make_topic()
    producer.send(name, b"one", timestamp_ms=_TIMESTAMP)
    producer.send(name, "zwö".encode(), key=b"k", headers=[("h", b"v"), ("n", None)])
    producer.send(name, None, key=b"gone", timestamp_ms=_TIMESTAMP + 1)
    producer.flush()
    return name


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--property", "print.key=true"),
        ("--property", "print.value=false"),
        ("--property", "print.value=false", "--property", "print.offset=true"),
        _EVERYTHING,
        (*_EVERYTHING, "--property", "key.separator= | ", "--property", "headers.separator=;"),
        (*_EVERYTHING, "--property", "null.literal=<none>", "--property", "line.separator=##"),
        ("--property", "print.key=TRUE", "--formatter", "kafka.tools.DefaultMessageFormatter"),
        ("--formatter", "org.apache.kafka.tools.consumer.NoOpMessageFormatter"),
        ("--formatter", "org.apache.kafka.tools.consumer.LoggingMessageFormatter"),
        (
            *("--value-deserializer", "org.apache.kafka.common.serialization.StringDeserializer"),
            *("--key-deserializer", "org.apache.kafka.common.serialization.StringDeserializer"),
        ),
    ],
)
def test_records_are_shown_as_kafka_shows_them(
    compare: Compare, broker: Broker, topic: str, options: tuple[str, ...]
) -> None:
    shown = compare(
        "kafka-console-consumer",
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--from-beginning"),
        *("--max-messages", "3", *options),
    )

    assert shown.stderr.splitlines()[-1] == "Processed a total of 3 messages"


def test_separators_in_a_file_may_end_in_blanks(
    compare: Compare, broker: Broker, topic: str, tmp_path: Path
) -> None:
    formatter = tmp_path / "formatter.properties"
    formatter.write_text("print.key=true\nprint.headers=true\nkey.separator=: \nnull.literal=\\ \n")

    compare(
        "kafka-console-consumer",
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--from-beginning"),
        *("--max-messages", "3", "--formatter-config", str(formatter)),
    )


@pytest.mark.parametrize(
    "options",
    [
        ("--partition", "0", "--offset", "1", "--max-messages", "1"),
        ("--partition", "0", "--offset", "earliest", "--max-messages", "2"),
        ("--partition", "0", "--from-beginning", "--max-messages", "1"),
        ("--partition", "0", "--timeout-ms", "500"),
        ("--partition", "0", "--offset", "LATEST", "--timeout-ms", "500"),
    ],
)
def test_reading_begins_where_it_is_told(
    compare: Compare, broker: Broker, topic: str, options: tuple[str, ...]
) -> None:
    where = ("--bootstrap-server", broker.bootstrap, "--topic", topic)

    compare("kafka-console-consumer", *where, *options, "--property", "print.offset=true")


def test_numbers_are_shown_by_deserializers(
    compare: Compare, broker: Broker, make_topic: MakeTopic, producer: KafkaProducer
) -> None:
    topic = make_topic()
    producer.send(topic, (-5).to_bytes(8, signed=True), key=(7).to_bytes(4)).get(10)
    prefix = "org.apache.kafka.common.serialization."

    shown = compare(
        "kafka-console-consumer",
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--from-beginning"),
        *("--max-messages", "1", "--property", "print.key=true"),
        *("--property", f"key.deserializer={prefix}IntegerDeserializer"),
        *("--property", f"value.deserializer={prefix}LongDeserializer"),
    )

    assert shown.stdout == "7\t-5\n"


def test_fractions_are_shown_by_deserializers(
    compare: Compare, broker: Broker, make_topic: MakeTopic, producer: KafkaProducer
) -> None:
    topic = make_topic()
    numbers = [0.0, -0.5, 0.1, 1 / 3, 123456.789, 1e-5, 12345678.0, 1e30, float("inf")]
    for number in numbers:
        value, key = struct.pack(">d", number), struct.pack(">f", number)
        producer.send(topic, value, key=key).get(10)
    prefix = "org.apache.kafka.common.serialization."

    shown = compare(
        "kafka-console-consumer",
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--from-beginning"),
        *("--max-messages", str(len(numbers)), "--property", "print.key=true"),
        *("--property", f"key.deserializer={prefix}FloatDeserializer"),
        *("--property", f"value.deserializer={prefix}DoubleDeserializer"),
    )

    assert shown.lines[3] == "0.33333334\t0.3333333333333333"


def test_aborted_records_are_left_out_if_asked(
    compare: Compare, broker: Broker, make_topic: MakeTopic
) -> None:
    topic = make_topic()
    with KafkaProducer(
        bootstrap_servers=broker.bootstrap, transactional_id=uuid.uuid4().hex
    ) as producer:
        producer.init_transactions()
        for end in (producer.abort_transaction, producer.commit_transaction):
            producer.begin_transaction()
            producer.send(topic, end.__name__.encode())
            end()

    shown = compare(
        "kafka-console-consumer",
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--from-beginning"),
        *("--max-messages", "1", "--isolation-level", "read_committed"),
    )

    assert shown.lines == ["commit_transaction"]


def test_a_group_goes_on_after_what_was_shown(broker: Broker, topic: str) -> None:
    where = ("--bootstrap-server", broker.bootstrap, "--topic", topic, "--from-beginning")
    group = ("--group", f"g-{uuid.uuid4().hex}", "--max-messages", "1")

    shown = [run_ours("kafka-console-consumer", *where, *group).stdout for _ in range(3)]

    assert shown == ["one\n", "zwö\n", "null\n"]


def test_topics_are_included_by_pattern(compare: Compare, broker: Broker, topic: str) -> None:
    shown = compare(
        "kafka-console-consumer",
        *("--bootstrap-server", broker.bootstrap, "--include", f"{topic[:-1]}.|other"),
        *("--from-beginning", "--max-messages", "3"),
    )

    assert shown.lines == ["one", "zwö", "null"]


@pytest.mark.parametrize(
    ("formatter", "internal_topic"),
    [
        ("OffsetsMessageFormatter", "__consumer_offsets"),
        ("GroupMetadataMessageFormatter", "__consumer_offsets"),
        ("TransactionLogMessageFormatter", "__transaction_state"),
    ],
)
def test_internal_topics_are_shown_as_json(
    compare: Compare, broker: Broker, topic: str, formatter: str, internal_topic: str
) -> None:
    where = ("--bootstrap-server", broker.bootstrap)
    group = f"g-{uuid.uuid4().hex}"
    run_ours(
        "kafka-console-consumer",
        *(*where, "--topic", topic, "--from-beginning", "--max-messages", "1", "--group", group),
    )
    with KafkaProducer(bootstrap_servers=broker.bootstrap, transactional_id=group) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(topic, b"x")
        producer.commit_transaction()
    partition = TopicPartition(internal_topic, java_partition_for(group, _INTERNAL_PARTITIONS))
    with KafkaConsumer(bootstrap_servers=broker.bootstrap) as consumer:
        count = consumer.end_offsets([partition])[partition]

    shown = compare(
        "kafka-console-consumer",
        *(*where, "--topic", internal_topic, "--partition", str(partition.partition)),
        *("--offset", "earliest", "--max-messages", str(count)),
        *("--formatter", f"org.apache.kafka.tools.consumer.{formatter}"),
    )

    assert group in shown.stdout


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--topic", "t", "--include", "t"),
        ("--topic", ""),
        ("--include", ""),
        ("--topic", "t", "--offset", "3"),
        ("--include", "t", "--partition", "0"),
        ("--topic", "t", "--partition", "0", "--offset", "-3"),
        ("--topic", "t", "--partition", "0", "--offset", "first"),
        ("--topic", "t", "--partition", "0", "--offset", "²"),
        ("--topic", "t", "--partition", "0", "--offset", "1", "--from-beginning"),
        ("--topic", "t", "--partition", "0", "--group", "g"),
        ("--topic", "t", "--group", "g", "--consumer-property", "group.id=h"),
        ("--topic", "t", "--from-beginning", "--consumer-property", "auto.offset.reset=latest"),
        ("--topic", "t", "--consumer-property", "fetch.min.bytes=x"),
        ("--topic", "t", "--formatter", "NoSuchFormatter"),
    ],
    ids=" ".join,
)
def test_bad_use_is_one_line_and_ends_as_in_kafka(
    compare: Compare, broker: Broker, options: tuple[str, ...]
) -> None:
    ended = compare("kafka-console-consumer", "--bootstrap-server", broker.bootstrap, *options)

    assert ended.code == 1
    assert len(ended.stderr.splitlines()) == 1


def test_a_record_that_cannot_be_shown_ends_it_or_is_left_out(
    apache: ApacheTools, broker: Broker, topic: str
) -> None:
    arguments = (
        *("--bootstrap-server", broker.bootstrap, "--topic", topic, "--from-beginning"),
        *(
            "--property",
            "value.deserializer=org.apache.kafka.common.serialization.LongDeserializer",
        ),
        *("--max-messages", "3"),
    )

    for options in ((), ("--skip-message-on-error",)):
        theirs = apache.run("kafka-console-consumer", *arguments, *options)
        ours = run_ours("kafka-console-consumer", *arguments, *options)

        assert (ours.code, ours.stdout) == (theirs.code, theirs.stdout)
