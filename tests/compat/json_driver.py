"""Talks to a client in another language: a program that reads a JSON request per line on its
standard input and answers a JSON line, started once and used by all tests of that client.

    {"op": "partitionCount", "topic": "t"}  ->  {"result": 3}  or  {"error": "…"}

Keys, values and header values travel in base64.
"""

import base64
import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import IO, Any

from tests.compat.cases import EVERYTHING, Can, Message


class DriverError(Exception):
    """The client in the other process reported this."""


class JsonDriver:
    """Client and Admin of the contract, by proxy. Used by one thread."""

    def __init__(
        self,
        command: Sequence[str],
        bootstrap: str,
        *,
        errors: IO[bytes],
        environment: Mapping[str, str] | None = None,
        can: frozenset[Can] = EVERYTHING,
    ) -> None:
        self.can = can
        self._process = subprocess.Popen(
            [*command, bootstrap],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=environment,
        )

    def close(self) -> int:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        try:
            return self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
        finally:
            self._process.stdout.close()

    def call(self, op: str, **arguments: object) -> Any:
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"op": op, **arguments}).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise DriverError(f"{op}: the client's process ended")
        answer = json.loads(line)
        if "error" in answer:
            raise DriverError(f"{op}: {answer['error']}")
        return answer["result"]

    def produce(
        self,
        topic: str,
        messages: Sequence[Message],
        *,
        codec: str = "none",
        acks: str = "all",
        idempotent: bool = False,
    ) -> None:
        self.call(
            "produce",
            topic=topic,
            messages=[_to_json(message) for message in messages],
            codec=codec,
            acks=acks,
            idempotent=idempotent,
        )

    def consume(self, topic: str, partition: int, count: int, *, offset: int = 0) -> list[Message]:
        got = self.call("consume", topic=topic, partition=partition, count=count, offset=offset)
        return [_from_json(message) for message in got]

    def create_topic(self, topic: str, partitions: int, config: dict[str, str]) -> None:
        self.call("createTopic", topic=topic, partitions=partitions, config=config)

    def delete_topic(self, topic: str) -> None:
        self.call("deleteTopic", topic=topic)

    def partition_count(self, topic: str) -> int | None:
        return self.call("partitionCount", topic=topic)

    def add_partitions(self, topic: str, total: int) -> None:
        self.call("addPartitions", topic=topic, total=total)

    def topic_config(self, topic: str) -> dict[str, str]:
        return self.call("topicConfig", topic=topic)

    def set_topic_config(self, topic: str, key: str, value: str) -> None:
        self.call("setTopicConfig", topic=topic, key=key, value=value)

    def delete_records(self, topic: str, partition: int, before_offset: int) -> None:
        self.call("deleteRecords", topic=topic, partition=partition, beforeOffset=before_offset)

    def offset_for(self, topic: str, partition: int, timestamp_ms: int) -> int:
        return self.call("offsetFor", topic=topic, partition=partition, timestamp=timestamp_ms)

    def brokers(self) -> list[str]:
        return self.call("brokers")


def _to_json(message: Message) -> dict[str, object]:
    return {
        "key": _base64(message.key),
        "value": _base64(message.value),
        "headers": [[name, _base64(value)] for name, value in message.headers],
        "timestamp": message.timestamp_ms,
        "partition": message.partition,
    }


def _from_json(message: dict[str, Any]) -> Message:
    return Message(
        _bytes(message["value"]),
        _bytes(message["key"]),
        tuple((name, _bytes(value)) for name, value in message["headers"]),
        message["timestamp"],
        message["partition"],
    )


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
