"""What a test can do with a broker, wherever that runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from kafkapy.common.errors import Errors, KafkaError
from kafkapy.common.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kafkapy.common.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kafkapy.common.protocol.messages.describe_groups import (
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from kafkapy.common.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kafkapy.common.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kafkapy.common.protocol.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse
from kafkapy.testing.broker_clock import BrokerClock
from kafkapy.testing.faults import Faults
from kafkapy.testing.recorded_request import RecordedRequest
from kafkapy.testing.request_interceptor import OWN_CLIENT_ID
from kafkapy.testing.timeline import GroupView, timeline
from kafkapy.testing.topic_reader import IsolationLevel, StoredRecord, TopicReader
from kafkapy.testing.wire_client import ConnectionClosed, WireClient
from kafkapy.utils.time import SystemTime

_TIMEOUT_MS = 15_000
_POLL_MS = 100
_PAUSE_MS = 10


class _Anything:
    def __repr__(self) -> str:
        return "anything"


ANYTHING: Final = _Anything()
Expected = bytes | str | None | Callable[[bytes | None], bool] | _Anything


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A state of a broker to which it can go back, and no other."""

    number: int
    broker: str


class BrokerHandle(ABC):
    """A broker for tests. Thread-safe, but starting and stopping are for one thread.

    What can be seen from outside is asked over the wire, under a client id that faults and the
    list of requests leave alone.
    """

    def __init__(self, faults: Faults, time: BrokerClock) -> None:
        self.faults = faults  # constant after construction
        self.time = time

    # Life

    @abstractmethod
    def start(self) -> None:
        """Returns when clients can be served. Raises KafkaError if that will not be."""

    @abstractmethod
    def stop(self) -> None:
        """Leaves no thread, process, socket or file behind. Idempotent."""

    @abstractmethod
    def restart(self, *, clean: bool = True) -> None:
        """Stop and start over the same data and the same port; unclean is as if it was killed."""

    @property
    @abstractmethod
    def bootstrap_servers(self) -> str:
        """host:port, for any client."""

    @property
    @abstractmethod
    def log_dir(self) -> Path:
        """Where its log files are, until the next rollback or restart."""

    @property
    @abstractmethod
    def failure(self) -> str | None:
        """Why the broker would have ended its process, had it one of its own, if it would."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # Going back

    @abstractmethod
    def checkpoint(self) -> Checkpoint:
        """Remember everything that is stored: topics, settings, records, offsets, transactions."""

    @abstractmethod
    def rollback(self, checkpoint: Checkpoint) -> None:
        """Make everything as it was, the clock included. All connections are closed."""

    @abstractmethod
    def discard(self, checkpoint: Checkpoint) -> None:
        """It is not needed any more."""

    @contextmanager
    def rolled_back(self) -> Iterator[None]:
        """What happens inside is undone at the end; faults put in inside are cleared."""
        checkpoint = self.checkpoint()
        try:
            yield
        finally:
            self.faults.clear()
            self.rollback(checkpoint)
            self.discard(checkpoint)

    # Topics

    def create_topic(
        self, name: str, *, partitions: int = 1, configs: Mapping[str, str] | None = None
    ) -> None:
        """Returns when the topic can be used. Raises KafkaError saying why it cannot be made."""
        for key, value in (configs or {}).items():
            if not isinstance(value, str):
                raise KafkaError(
                    f"topic {name} is not created: {key}: expected text, not {value!r}"
                )
        request = CreateTopicsRequest(
            topics=[
                CreateTopicsRequest.CreatableTopic(
                    name=name,
                    num_partitions=partitions,
                    replication_factor=1,
                    configs=[
                        CreateTopicsRequest.CreatableTopicConfig(name=key, value=value)
                        for key, value in (configs or {}).items()
                    ],
                )
            ],
            timeout_ms=_TIMEOUT_MS,
        )
        with self._client() as client:
            (result,) = client.ask(request, CreateTopicsResponse).topics
        _raise_for(result.error_code, f"topic {name} is not created", result.error_message)

    def delete_topic(self, name: str) -> None:
        request = DeleteTopicsRequest(
            topics=[DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=_TIMEOUT_MS
        )
        with self._client() as client:
            (result,) = client.ask(request, DeleteTopicsResponse).responses
        _raise_for(result.error_code, f"topic {name} is not deleted", result.error_message)

    def topics(self) -> dict[str, int]:
        """How many partitions each topic has, without those that the broker keeps for itself."""
        with self._client() as client:
            response = client.ask(MetadataRequest(topics=None), MetadataResponse)
        return {
            topic.name: len(topic.partitions)
            for topic in response.topics
            if topic.name is not None and not topic.is_internal
        }

    def records(
        self, topic: str, *, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED
    ) -> list[StoredRecord]:
        """All that are in the log, partition by partition; none if there is no such topic."""
        with self._client() as client:
            found = TopicReader(client, topic, isolation).poll()
        return sorted(found, key=lambda record: (record.partition, record.offset))

    # Groups

    def committed(self, group: str, topic: str) -> dict[int, int]:
        """The group's committed offset of each partition that has one."""
        return {
            partition: offset
            for (name, partition), offset in self._offsets(group).items()
            if name == topic
        }

    def groups(self) -> dict[str, GroupView]:
        """Every group with its state, its members' client ids and its committed offsets."""
        with self._client() as client:
            listed = client.ask(ListGroupsRequest(), ListGroupsResponse).groups
            names = [group.group_id for group in listed]
            described = client.ask(
                DescribeGroupsRequest(groups=names), DescribeGroupsResponse
            ).groups
        return {
            group.group_id: GroupView(
                state=group.group_state,
                members=tuple(sorted(member.client_id for member in group.members)),
                offsets=self._offsets(group.group_id),
            )
            for group in described
        }

    # What happened

    @abstractmethod
    def requests(
        self,
        api: str | None = None,
        *,
        topic: str | None = None,
        client_id: str | None = None,
    ) -> list[RecordedRequest]:
        """The latest requests of clients, the oldest first; at most 10,000, or 16 MiB of them."""

    @abstractmethod
    def clear_requests(self) -> None:
        """Forget them."""

    def expect(
        self,
        topic: str,
        *,
        key: Expected = ANYTHING,
        value: Expected = ANYTHING,
        headers: Mapping[str, Expected] | None = None,
        count: int = 1,
        within: float = 5,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> list[StoredRecord]:
        """Wait until the topic holds `count` matching records, and return those that match.

        Fails with an account of what happened around the topic when there are not as many within
        so many seconds. Text is compared as UTF-8; a function gets the bytes.
        """
        system = SystemTime()
        deadline_ms = system.hi_res_clock_ms() + round(within * 1000)
        seen: list[StoredRecord] = []
        matching: list[StoredRecord] = []
        reader: TopicReader | None = None
        client: WireClient | None = None
        try:
            while True:
                left_ms = deadline_ms - system.hi_res_clock_ms()
                try:
                    if reader is None:
                        client = WireClient(self._address(), client_id=OWN_CLIENT_ID)
                        reader = TopicReader(client, topic, isolation)
                        seen = []
                    seen += reader.poll(max(0, min(left_ms, _POLL_MS)))
                except (OSError, ConnectionClosed):
                    # The broker is starting again, or has gone back in time.
                    if client is not None:
                        client.close()
                    reader = None
                matching = [r for r in seen if _matches(r, key=key, value=value, headers=headers)]
                if len(matching) >= count:
                    return matching
                if left_ms <= 0:
                    break
                if not seen or reader is None:
                    system.sleep(_PAUSE_MS)
        finally:
            if client is not None:
                client.close()
        wanted = {"key": key, "value": value, "headers": headers or ANYTHING}
        sought = ", ".join(f"{k} {v!r}" for k, v in wanted.items() if v is not ANYTHING)
        raise AssertionError(
            f"{topic} has {len(matching)} of {count} records with {sought or 'anything'} after "
            f"{within} s\n{self.timeline(topic)}"
        )

    def timeline(self, topic: str) -> str:
        """What happened around a topic, in words."""
        return timeline(
            topic, requests=self.requests(), records=self.records(topic), groups=self.groups()
        )

    def _offsets(self, group: str) -> dict[tuple[str, int], int]:
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)]
        )
        with self._client() as client:
            response = client.ask(request, OffsetFetchResponse)
        return {
            (topic.name, partition.partition_index): partition.committed_offset
            for found in response.groups
            if found.error_code == Errors.NONE.code
            for topic in found.topics
            for partition in topic.partitions
        }

    def _address(self) -> tuple[str, int]:
        host, _, port = self.bootstrap_servers.rpartition(":")
        return host.strip("[]"), int(port)

    @contextmanager
    def _client(self) -> Iterator[WireClient]:
        client = WireClient(self._address(), client_id=OWN_CLIENT_ID)
        try:
            yield client
        finally:
            client.close()


def _raise_for(code: int, what: str, message: str | None) -> None:
    error = Errors.for_code(code)
    if error is not Errors.NONE:
        raise KafkaError(f"{what}: {message or error.name}")


def _matches(
    record: StoredRecord,
    *,
    key: Expected,
    value: Expected,
    headers: Mapping[str, Expected] | None,
) -> bool:
    return (
        _is(record.key, key)
        and _is(record.value, value)
        and all(
            any(name == found and _is(content, wanted) for found, content in record.headers)
            for name, wanted in (headers or {}).items()
        )
    )


def _is(found: bytes | None, wanted: Expected) -> bool:
    if isinstance(wanted, _Anything):
        return True
    if callable(wanted):
        return wanted(found)
    return found == (wanted.encode() if isinstance(wanted, str) else wanted)
