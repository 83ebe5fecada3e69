"""bin/kafka-e2e-latency: how long a record takes from the producer to the consumer."""

from __future__ import annotations

import random
import sys
import uuid
from collections.abc import Sequence

from kafkapy.clients.admin.admin_client import AdminClient
from kafkapy.clients.admin.admin_client_config import AdminClientConfig
from kafkapy.clients.admin.new_topic import NewTopic
from kafkapy.clients.consumer.consumer_config import ConsumerConfig
from kafkapy.clients.consumer.consumer_record import ConsumerRecord
from kafkapy.clients.consumer.kafka_consumer import KafkaConsumer
from kafkapy.clients.producer.kafka_producer import KafkaProducer
from kafkapy.clients.producer.producer_config import ProducerConfig
from kafkapy.common.command_line import CommandParser, fail, run_command
from kafkapy.common.config_def import config_keys
from kafkapy.common.errors import KafkaError
from kafkapy.common.types import TopicPartition
from kafkapy.tools.client_arguments import load_property_file
from kafkapy.tools.progress import Progress
from kafkapy.tools.termination import TURN_MS, DeferredTermination
from kafkapy.utils.time import SystemTime, Time

_POLL_MS = 60_000
_PARTITIONS = 1
_REPLICATION_FACTOR = 1
_REPORTED_EACH = 1000
_NANOS_PER_MS = 1_000_000


def parser() -> CommandParser:
    command = CommandParser(
        "kafka-e2e-latency", "Write records one by one, and tell how long each takes to be read."
    )
    command.add_argument("broker_list", metavar="broker-list", help="host:port[,host:port]")
    command.add_argument("topic", help="the topic to use; it is made if it is not there")
    command.add_argument("num_messages", metavar="num-messages", type=int, help="how many records")
    command.add_argument(
        "producer_acks", metavar="producer-acks", help="who must have a record: 1 or all"
    )
    command.add_argument(
        "message_size_bytes", metavar="message-size-bytes", type=int, help="the size of values"
    )
    command.add_argument(
        "properties_file", metavar="FILE", nargs="?", help="settings of the clients"
    )
    return command


def run(arguments: Sequence[str]) -> int:
    command = parser()
    parsed = command.parse_args(arguments)
    if parsed.producer_acks not in ("1", "all"):
        fail("Latency can only be measured with acknowledgements: producer-acks is 1 or all")
    if parsed.num_messages < 1:
        command.error("num-messages must be at least 1")
    shared = load_property_file(parsed.properties_file) | {"bootstrap.servers": parsed.broker_list}
    _ensure_topic(shared, parsed.topic)
    producer_settings = _of(ProducerConfig, shared) | {
        "linger.ms": "0",
        "max.block.ms": str(2**31 - 1),
        "acks": parsed.producer_acks,
    }
    consumer_settings = _of(ConsumerConfig, shared) | {
        "group.id": f"test-group-{uuid.uuid4()}",
        "enable.auto.commit": "false",
        "auto.offset.reset": "latest",
        "fetch.max.wait.ms": "0",  # no waiting for more, which would count as latency
    }
    with (
        DeferredTermination() as termination,
        KafkaConsumer(properties=consumer_settings) as consumer,
        KafkaProducer(properties=producer_settings) as producer,
        Progress("records", parsed.num_messages) as progress,
    ):
        _seek_to_end(consumer, parsed.topic)
        latencies = _measure(
            parsed.topic,
            parsed.num_messages,
            parsed.message_size_bytes,
            producer=producer,
            consumer=consumer,
            progress=progress,
            termination=termination,
        )
    _print_result(latencies)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    return run_command(run, arguments)


def _of(config_class: type, properties: dict[str, str]) -> dict[str, str]:
    """One property file serves three kinds of clients."""
    names = {key.name for key in config_keys(config_class)}
    return {name: value for name, value in properties.items() if name in names}


def _ensure_topic(properties: dict[str, str], topic: str) -> None:
    with AdminClient(properties=_of(AdminClientConfig, properties)) as admin:
        if topic in admin.list_topics():
            return
        print(
            f'Topic "{topic}" does not exist. Will create topic with {_PARTITIONS} partition(s) and'
            f" replication factor = {_REPLICATION_FACTOR}"
        )
        admin.create_topics([NewTopic(topic, _PARTITIONS, _REPLICATION_FACTOR)])


def _seek_to_end(consumer: KafkaConsumer, topic: str) -> None:
    partitions = [
        TopicPartition(topic, partition) for partition in consumer.partitions_for_topic(topic) or ()
    ]
    consumer.assign(partitions)
    consumer.seek_to_end(*partitions)
    for partition in partitions:
        consumer.position(partition)


def _measure(
    topic: str,
    num_messages: int,
    size: int,
    *,
    producer: KafkaProducer,
    consumer: KafkaConsumer,
    progress: Progress,
    termination: DeferredTermination,
) -> list[int]:
    """In nanoseconds."""
    time = SystemTime()
    chance = random.Random(0)
    latencies = []
    for number in range(num_messages):
        progress.update(number)
        message = bytes(chance.choices(range(65, 91), k=size))
        begun = time.nanoseconds()
        producer.send(topic, message).get()
        records = _poll(consumer, time, termination)
        elapsed = time.nanoseconds() - begun
        if not records:
            raise KafkaError(f"Record {number} was not read within {_POLL_MS} ms")
        if len(records) > 1 or bytes(records[0].value) != message:
            raise KafkaError(f"{len(records)} records were read, not just number {number} sent")
        latencies.append(elapsed)
        if number % _REPORTED_EACH == 0:
            print(f"{number}\t{elapsed / _NANOS_PER_MS}")
    return latencies


def _poll(
    consumer: KafkaConsumer, time: Time, termination: DeferredTermination
) -> list[ConsumerRecord]:
    """What has come first, if anything has within the time."""
    deadline_ms = time.hi_res_clock_ms() + _POLL_MS
    while time.hi_res_clock_ms() < deadline_ms:
        termination.raise_if_asked()
        if polled := consumer.poll(TURN_MS):
            return [record for records in polled.values() for record in records]
    return []


def _print_result(latencies: list[int]) -> None:
    print(f"Avg latency: {sum(latencies) / len(latencies) / _NANOS_PER_MS:.4f} ms")
    ordered = sorted(latencies)
    shown = (
        f"{name} = {ordered[int(part * (len(ordered) - 1))] // _NANOS_PER_MS}"
        for part, name in ((0.5, "50th"), (0.99, "99th"), (0.999, "99.9th"))
    )
    print(f"Percentiles: {', '.join(shown)}")


if __name__ == "__main__":
    sys.exit(main())
