"""Rows as records, and rows that cannot be: without Spark."""

import pickle
from collections.abc import Iterator, Sequence
from uuid import uuid4

import pytest
from pyspark.sql.types import ArrayType, StructType

from kafkapy.clients.admin import AdminClient
from kafkapy.clients.admin.transaction_description import TransactionState
from kafkapy.pipeline.pipeline_errors import OptionError, PipelineError
from kafkapy.pipeline.sink.kafka_sink_options import SinkOptions
from kafkapy.pipeline.sink.kafka_writer import KafkaWriter
from kafkapy.testing import EmbeddedBroker
from tests.integration.pipeline.spark_role import committed_values, frame, in_task

HEADERS = ArrayType(StructType().add("key", "string").add("value", "binary"))
VALUE = StructType().add("value", "string")
FULL = (
    StructType()
    .add("topic", "string")
    .add("partition", "integer")
    .add("key", "string")
    .add("value", "binary")
    .add("headers", HEADERS)
)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker({"auto.create.topics.enable": "false"}) as broker:
        yield broker


@pytest.fixture
def topic(broker: EmbeddedBroker) -> Iterator[str]:
    name = f"rows-{uuid4().hex}"
    broker.create_topic(name, partitions=2, configs={"max.message.bytes": "1000"})
    yield name
    broker.faults.clear()


def writer(broker: EmbeddedBroker, schema: StructType, **options: str) -> KafkaWriter:
    given = {
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "kafka.max.block.ms": "500",
        **options,
    }
    return pickle.loads(pickle.dumps(KafkaWriter(SinkOptions.of(given), schema)))


def write(writer: KafkaWriter, schema: StructType, *batches: Sequence[tuple], task: int = 0):
    with in_task(task):
        return writer.write(iter([frame(schema, *rows) for rows in batches]))


def test_all_columns_become_what_they_say(broker: EmbeddedBroker, topic: str) -> None:
    rows = [
        (topic, 1, "k", b"v", [("h", b"1"), ("h", None)]),
        (topic, 0, None, None, None),
        (topic, None, "key", b"", []),
    ]

    message = write(writer(broker, FULL), FULL, rows[:2], [], rows[2:], task=4)

    assert message.rows == 3
    stored = {(r.partition, r.key, r.value, r.headers) for r in broker.records(topic)}
    assert (1, b"k", b"v", (("h", b"1"), ("h", None))) in stored
    assert (0, None, None, ()) in stored
    assert {(key, value) for _, key, value, _ in stored} == {
        (b"k", b"v"),
        (None, None),
        (b"key", b""),
    }


def test_topic_of_the_option_wins_over_the_column(broker: EmbeddedBroker, topic: str) -> None:
    rows = [("elsewhere", None, None, b"a", None), (None, None, None, b"b", None)]

    write(writer(broker, FULL, topic=topic), FULL, rows)

    assert sorted(r.value for r in broker.records(topic)) == [b"a", b"b"]


GOOD = ("{topic}", None, None, b"good", None)


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ((None, None, None, b"v", None), "row 2 of task 7: column topic: is null"),
        (("{topic}", 2, None, b"v", None), "row 2 of task 7: column partition: topic .* has 2"),
        (("{topic}", -1, None, b"v", None), "row 2 of task 7: column partition: -1 is negative"),
        (("{topic}", 0, None, b"v", [(None, b"")]), "row 2 of task 7: column headers: a header"),
        (("{topic}", 1, None, bytes(2000), None), "row 2 .* topic .*, partition 1: RecordTooLarge"),
        (("no-such", None, None, b"v", None), "row 2 of task 7: .*topic no-such: "),
        (("no-such", 0, None, b"v", None), "row 2 of task 7: .*no-such"),
        (("not legal", None, None, b"v", None), "row 2 of task 7: .*not legal.*InvalidTopic"),
    ],
)
def test_row_that_cannot_be_written_is_named(
    broker: EmbeddedBroker, topic: str, row: tuple, told: str
) -> None:
    named = [
        tuple(topic if cell == "{topic}" else cell for cell in cells)
        for cells in (GOOD, GOOD, row, GOOD)
    ]

    with pytest.raises(PipelineError, match=told):
        write(writer(broker, FULL), FULL, named[:1], named[1:], task=7)


def test_refused_write_fails_the_task(broker: EmbeddedBroker, topic: str) -> None:
    broker.faults.on("Produce", topic=topic).always().error("TOPIC_AUTHORIZATION_FAILED")

    with pytest.raises(PipelineError, match=f"row 0 .* topic {topic}, .*TopicAuthorization"):
        write(writer(broker, VALUE, topic=topic), VALUE, [("v",)], [("w",)])


def test_lost_answer_doubles_nothing(broker: EmbeddedBroker, topic: str) -> None:
    broker.faults.on("Produce", topic=topic).drop_response()

    write(writer(broker, VALUE, topic=topic), VALUE, [(f"{i}",) for i in range(100)])

    values = sorted(int(r.value or b"") for r in broker.records(topic))
    assert values == list(range(100))


def test_overwriting_is_refused(broker: EmbeddedBroker) -> None:
    options = SinkOptions.of({"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "t"})

    with pytest.raises(OptionError, match="mode: a topic cannot be overwritten"):
        KafkaWriter(options, VALUE, overwrite=True)


# In transactions


def open_transactions(broker: EmbeddedBroker) -> int:
    with AdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        return len(admin.list_transactions(states=[TransactionState.ONGOING]))


@pytest.mark.parametrize("ending", ["commit", "abort"])
def test_exactly_once_batch_is_seen_as_a_whole_or_not_at_all(
    broker: EmbeddedBroker, topic: str, ending: str
) -> None:
    sink = writer(broker, VALUE, topic=topic, exactlyOnce="true")
    messages = [write(sink, VALUE, [("a",)]), write(sink, VALUE, [("b",)], task=1), None]
    messages[2] = write(sink, VALUE, [], task=2)
    assert committed_values(broker, topic) == []

    if ending == "commit":
        sink.commit(messages)
    else:
        sink.abort([*messages[1:], None])

    assert committed_values(broker, topic) == ([b"a", b"b"] if ending == "commit" else [])
    assert open_transactions(broker) == 0


def test_failed_task_leaves_no_transaction_open(broker: EmbeddedBroker, topic: str) -> None:
    sink = writer(broker, VALUE, topic=topic, exactlyOnce="true")

    with pytest.raises(PipelineError, match=r"row 1 of task 0: .*RecordTooLarge"):
        write(sink, VALUE, [("a",), ("x" * 2000,)])

    assert open_transactions(broker) == 0
