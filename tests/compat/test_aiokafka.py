"""aiokafka against the broker; each verb of the adapter runs its own event loop."""

import asyncio
from collections.abc import Sequence

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.errors import for_code

from tests.compat.brokers import Broker
from tests.compat.cases import EVERYTHING, Message
from tests.compat.contract import EARLIEST, LATEST, AdminContract, ClientContract

_WAIT_S = 20


class AiokafkaClient:
    can = EVERYTHING

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        async def send() -> None:
            producer = AIOKafkaProducer(
                bootstrap_servers=self._bootstrap,
                compression_type=None if codec == "none" else codec,
                acks=acks if acks == "all" else int(acks),
                enable_idempotence=idempotent,
                max_request_size=2_000_000,
                linger_ms=5,
            )
            async with producer:
                futures = [
                    await producer.send(
                        topic,
                        key=message.key,
                        value=message.value,
                        headers=list(message.headers),
                        partition=message.partition,
                        timestamp_ms=message.timestamp_ms,
                    )
                    for message in messages
                ]
                await asyncio.wait_for(asyncio.gather(*futures), _WAIT_S)

        asyncio.run(send())

    def consume(self, topic: str, partition: int, count: int, *, offset: int = 0) -> list[Message]:
        async def read() -> list[Message]:
            consumer = AIOKafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None)
            async with consumer:
                target = TopicPartition(topic, partition)
                consumer.assign([target])
                consumer.seek(target, offset)
                got: list[Message] = []
                async with asyncio.timeout(_WAIT_S):
                    while len(got) < count:
                        read = await consumer.getmany(
                            target, timeout_ms=1000, max_records=count - len(got)
                        )
                        got += [
                            Message(r.value, r.key, tuple(r.headers), r.timestamp, r.partition)
                            for r in read.get(target, [])
                        ]
                return got

        return asyncio.run(read())


class AiokafkaAdmin:
    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap

    def create_topic(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        new = NewTopic(topic, num_partitions=partitions, replication_factor=1, topic_configs=config)
        self._run("create_topics", [new])

    def delete_topic(self, topic: str) -> None:
        self._run("delete_topics", [topic])

    def partition_count(self, topic: str) -> int | None:
        if topic not in self._run("list_topics"):
            return None
        return len(self._run("describe_topics", [topic])[0]["partitions"])

    def add_partitions(self, topic: str, total: int) -> None:
        self._run("create_partitions", {topic: NewPartitions(total)})

    def topic_config(self, topic: str) -> dict[str, str]:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic)
        (response,) = self._run("describe_configs", [resource])
        ((_, _, _, _, entries),) = response.resources
        return {entry[0]: entry[1] for entry in entries}

    def set_topic_config(self, topic: str, key: str, value: str) -> None:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, {key: value})
        self._run("alter_configs", [resource])

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        self._run(
            "delete_records", {TopicPartition(topic, partition): RecordsToDelete(before_offset)}
        )

    def offset_for(self, topic: str, partition: int, timestamp_ms: int) -> int:
        async def ask() -> int:
            target = TopicPartition(topic, partition)
            consumer = AIOKafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None)
            async with consumer:
                if timestamp_ms == EARLIEST:
                    return (await consumer.beginning_offsets([target]))[target]
                if timestamp_ms == LATEST:
                    return (await consumer.end_offsets([target]))[target]
                return (await consumer.offsets_for_times({target: timestamp_ms}))[target].offset

        return asyncio.run(ask())

    def brokers(self) -> list[str]:
        found = self._run("describe_cluster")["brokers"]
        return [f"{broker['host']}:{broker['port']}" for broker in found]

    def _run(self, method: str, *arguments: object):
        """Calls one method of the admin client, and raises what its answer has in error codes."""

        async def call():
            client = AIOKafkaAdminClient(bootstrap_servers=self._bootstrap)
            await client.start()
            try:
                return await getattr(client, method)(*arguments)
            finally:
                await client.close()

        answer = asyncio.run(call())
        for error in getattr(answer, "topic_errors", ()):
            if error[1] != 0:
                raise for_code(error[1])(error[2] if len(error) > 2 else "")
        return answer


@pytest.fixture(scope="module")
def client(broker: Broker) -> AiokafkaClient:
    return AiokafkaClient(broker.bootstrap)


@pytest.fixture(scope="module")
def admin(broker: Broker) -> AiokafkaAdmin:
    return AiokafkaAdmin(broker.bootstrap)


class TestAiokafka(ClientContract, AdminContract):
    pass
