"""The loads: what the clients send, to which topic, and the limit server that stands beside it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.benchmarks import frames
from tests.benchmarks.broker_client import BenchmarkError, BrokerClient
from tests.benchmarks.frames import BATCH_BYTES, MIB, SLICE_BYTES, Frames
from tests.benchmarks.load_program import LoadProgram, Sample
from tests.benchmarks.measures import Bar, Measure

_RESPONSE_BYTES = 50
_FILLED_PARTITIONS = 4
_FILLED_SLICES = 64
# A deleted topic's bytes leave the page cache before the disk has seen them all.
_TOPIC_CONFIGS = {"file.delete.delay.ms": "1000"}


@dataclass(frozen=True, slots=True)
class Topic:
    """What a load writes to or reads from."""

    partitions: int
    batch: Callable[[], bytes]
    is_filled: bool = False  # to be read: made once for all rounds, else one for each


@dataclass(frozen=True, slots=True)
class Load:
    """A client's behaviour and what is read off it."""

    name: str
    connections: int
    pipelined: int
    server: str  # the limit: a server of load.c
    server_bytes: int
    topic: Topic | None
    measures: Mapping[Measure, Callable[[Sample], float]] = field(hash=False)

    def frames(self, topic_name: str) -> Frames:
        if self.topic is None:
            return frames.smallest()
        if self.topic.is_filled:
            return frames.fetch(topic_name, self.topic.partitions, _FILLED_SLICES)
        return frames.produce(topic_name, self.topic.partitions, self.topic.batch())

    @contextmanager
    def topic_on(self, client: BrokerClient, name: str) -> Iterator[None]:
        """The topic exists, filled if it must be, until the block is left."""
        if self.topic is None:
            yield
            return
        batch = self.topic.batch()
        client.create_topic(name, self.topic.partitions, batch, _TOPIC_CONFIGS)
        try:
            if self.topic.is_filled:
                # create_topic has put one batch into each partition.
                for _ in range(_FILLED_SLICES * (SLICE_BYTES // BATCH_BYTES) - 1):
                    for partition in range(self.topic.partitions):
                        client.append(name, partition, batch)
            yield
        finally:
            client.delete_topic(name)

    def run(
        self, program: LoadProgram, client: BrokerClient, topic_name: str, seconds: float
    ) -> Sample:
        """One round on a broker."""
        sample = program.client(
            (client.host, client.port),
            self.frames(topic_name),
            connections=self.connections,
            pipelined=self.pipelined,
            seconds=seconds,
            check_errors=True,
        )
        if (
            self.topic is not None
            and self.topic.is_filled
            and sample.bytes_per_answer < SLICE_BYTES
        ):
            raise BenchmarkError(f"{self.name}: answers of {sample.bytes_per_answer:.0f} bytes")
        return sample

    def run_limit(self, program: LoadProgram, work_dir: Path, seconds: float) -> Sample:
        """One round on the limit server."""
        file = None if self.server == "server" else work_dir / f"{self.name}.limit"
        if file is not None and self.server == "send-server" and not file.exists():
            _fill(file, _FILLED_PARTITIONS * _FILLED_SLICES)
        with program.server(self.server, self.server_bytes, file) as port:
            sample = program.client(
                ("127.0.0.1", port),
                self.frames("limit"),
                connections=self.connections,
                pipelined=self.pipelined,
                seconds=seconds,
                check_errors=False,
            )
        if file is not None and self.server == "write-server":
            file.unlink()
        return sample


def _fill(file: Path, slices: int) -> None:
    with file.open("wb") as out:
        for _ in range(slices):
            out.write(bytes(MIB))


LOADS = (
    Load(
        name="produce",
        connections=4,
        pipelined=5,
        server="write-server",
        server_bytes=_RESPONSE_BYTES,
        topic=Topic(partitions=4, batch=frames.large_batch),
        measures={
            Measure(
                name="produce",
                what="produce, 64 KiB batches of 64 records, acks=1",
                unit="MB/s",
                limit="C, receive + write to a file",
                bars=(Bar(0.35, is_ratio=True),),
            ): lambda sample: sample.sent_mb_per_second
        },
    ),
    Load(
        name="fetch",
        connections=4,
        pipelined=1,
        server="send-server",
        server_bytes=SLICE_BYTES,
        topic=Topic(_FILLED_PARTITIONS, frames.large_batch, is_filled=True),
        measures={
            Measure(
                name="fetch",
                what="fetch, 1 MiB slices",
                unit="MB/s",
                limit="C, sendfile",
                bars=(Bar(0.8, is_ratio=True),),
            ): lambda sample: sample.received_mb_per_second
        },
    ),
    Load(
        name="small",
        connections=64,
        pipelined=1,
        server="server",
        server_bytes=_RESPONSE_BYTES,
        topic=None,
        measures={
            Measure(
                name="small",
                what="smallest request, 64 connections",
                unit="requests/s",
                limit="C, epoll, 100 B in, 50 B out",
                bars=(Bar(15_000), Bar(0.15, is_ratio=True)),
            ): lambda sample: sample.requests_per_second
        },
    ),
    Load(
        name="produce-small",
        connections=64,
        pipelined=1,
        server="write-server",
        server_bytes=_RESPONSE_BYTES,
        topic=Topic(partitions=8, batch=frames.small_batch),
        measures={
            Measure(
                name="produce-small",
                what="one-record produce, acks=1, 64 connections",
                unit="requests/s",
                limit="C, receive + write to a file",
                bars=(Bar(6_000),),
            ): lambda sample: sample.requests_per_second
        },
    ),
    Load(
        name="latency",
        connections=1,
        pipelined=1,
        server="write-server",
        server_bytes=_RESPONSE_BYTES,
        topic=Topic(partitions=1, batch=frames.small_batch),
        measures={
            Measure(
                name="latency-p50",
                what="one-record produce, one at a time, p50",
                unit="ms",
                limit="C, receive + write to a file",
                bars=(Bar(0.5, is_maximum=True),),
            ): lambda sample: sample.p50_ms,
            Measure(
                name="latency-p99",
                what="the same, p99",
                unit="ms",
                limit="C, receive + write to a file",
                bars=(Bar(3, is_maximum=True),),
            ): lambda sample: sample.p99_ms,
            Measure(
                name="latency-p99.9",
                what="the same, p99.9",
                unit="ms",
                limit="C, receive + write to a file",
            ): lambda sample: sample.p999_ms,
        },
    ),
)
