"""kafka-console-producer beside Apache Kafka's: the same lines become the same records."""

import pytest

from kafkapy.clients.consumer import KafkaConsumer, TopicPartition
from tests.compat.apache_tools import ApacheTools
from tests.compat.brokers import Broker
from tests.compat.contract import MakeTopic
from tests.compat.outcome import run_ours

_KEYS = ("--property", "parse.key=true")
_HEADERS = ("--property", "parse.headers=true")


def _records(broker: Broker, topic: str, count: int) -> list[tuple[object, ...]]:
    with KafkaConsumer(bootstrap_servers=broker.bootstrap, auto_offset_reset="earliest") as reader:
        reader.assign([TopicPartition(topic, 0)])
        records: list[tuple[object, ...]] = []
        while len(records) < count:
            polled = reader.poll(10_000)
            assert polled, f"only {len(records)} of {count} records"
            for batch in polled.values():
                records += [(record.key, record.value, record.headers) for record in batch]
        return records


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ((), "one\ntwo\n\nthré\r\nfour\rfive"),
        (_KEYS, "k\tv\n\tno key\nk2\ta\tb\n"),
        ((*_KEYS, "--property", "key.separator= | "), "k | v\n"),
        ((*_KEYS, *_HEADERS), "h1:v1,h2:v2\tkey\tvalue\nh:\tk\tv\n"),
        (_HEADERS, "h1:v1\tvalue\n"),
        ((*_KEYS, *_HEADERS, "--property", "null.marker=NULL"), "h:NULL\tNULL\tNULL\n"),
        ((*_KEYS, *_HEADERS, "--property", "null.marker=NULL"), "NULL\tk\tv\n"),
        ((*_KEYS, *_HEADERS, "--property", "ignore.error=true"), "plain\nh:v\tx\nh\tk\tv\n"),
        (
            (
                *(*_KEYS, *_HEADERS, "--property", "headers.delimiter=#"),
                *("--property", "headers.separator=;", "--property", "headers.key.separator=="),
            ),
            "a=1;b=2#k\tv\n",
        ),
        (("--sync", "--compression-codec", "zstd"), "a\nb\n"),
        (("--compression-codec",), "a\n"),
        (("--request-required-acks", "all"), "a\n"),
    ],
)
def test_lines_become_the_same_records(
    broker: Broker,
    make_topic: MakeTopic,
    apache: ApacheTools,
    options: tuple[str, ...],
    lines: str,
) -> None:
    topics = [make_topic(), make_topic()]
    # Without waiting for more lines: the tools differ in nothing else.
    common = ("--bootstrap-server", broker.bootstrap, "--timeout", "0", *options)

    theirs = apache.run("kafka-console-producer", *common, "--topic", topics[0], stdin=lines)
    ours = run_ours("kafka-console-producer", *common, "--topic", topics[1], stdin=lines)

    assert (ours.code, ours.stdout, ours.stderr) == (theirs.code, theirs.stdout, "")
    count = len(lines.splitlines())
    assert _records(broker, topics[1], count) == _records(broker, topics[0], count)


@pytest.mark.parametrize(
    ("options", "lines", "said"),
    [
        (_KEYS, "no separator\n", "No key separator found on line number 1: 'no separator'"),
        (_HEADERS, "h:v\tx\nbad\n", "No headers delimiter found on line number 2: 'bad'"),
        (_HEADERS, "h\tv\n", "No header key separator found in pair 'h' on line number 1"),
        (
            (*_HEADERS, "--property", "headers.separator=:"),
            "x\n",
            "headers.key.separator and headers.separator may not be equal",
        ),
        (
            (*_HEADERS, "--property", "null.marker=,"),
            "x\n",
            "null.marker and headers.separator may not be equal",
        ),
        (("--compression-codec", "zip"), "x\n", "compression.type"),
        (("--producer-property", "acks=many"), "x\n", ""),
        (("--topic", "twice"), "x\n", "--topic can be given only once"),
        (("--batch-size", "large"), "x\n", "--batch-size"),
    ],
)
def test_bad_use_is_one_line_and_ends_as_in_kafka(
    broker: Broker,
    make_topic: MakeTopic,
    apache: ApacheTools,
    options: tuple[str, ...],
    lines: str,
    said: str,
) -> None:
    common = ("--bootstrap-server", broker.bootstrap, "--topic", make_topic(), *options)
    if "acks=many" in options:
        common += ("--request-required-acks", "7")

    theirs = apache.run("kafka-console-producer", *common, stdin=lines)
    ours = run_ours("kafka-console-producer", *common, stdin=lines)

    assert (ours.code, ours.stdout) == (theirs.code, theirs.stdout) == (1, "")
    assert len(ours.stderr.splitlines()) == 1
    assert said in ours.stderr


def test_what_comes_before_a_bad_line_is_written(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    where = ("--bootstrap-server", broker.bootstrap, "--topic", topic)

    ended = run_ours("kafka-console-producer", *where, *_KEYS, stdin="k\tv\nbad\n")

    assert ended.code == 1
    assert _records(broker, topic, 1) == [(b"k", b"v", ())]


def test_bytes_that_are_no_text_are_kept(broker: Broker, make_topic: MakeTopic) -> None:
    topic = make_topic()
    where = ("--bootstrap-server", broker.bootstrap, "--topic", topic)

    run_ours("kafka-console-producer", *where, stdin=b"a\xff\xfe\n")

    assert _records(broker, topic, 1) == [(None, b"a\xff\xfe", ())]


def test_a_broker_that_is_not_there_is_named() -> None:
    ended = run_ours(
        "kafka-console-producer",
        *("--bootstrap-server", "127.0.0.1:1", "--topic", "t", "--max-block-ms", "300", "--sync"),
        stdin="x\n",
    )

    assert ended.code == 1
    assert "127.0.0.1:1" in ended.stderr
