"""A stream reader and what it is told of the brokers."""

from typing import Any, Generic, TypeVar

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.columnar.record_schema import spark_schema
from kafkapy.pipeline.source.kafka_source_offset import KafkaSourceOffset
from kafkapy.pipeline.source.kafka_source_options import SourceOptions
from kafkapy.pipeline.source.micro_batch_reader import MicroBatchReader
from tests.helpers.mock_time import MockTime
from tests.unit.pipeline.source.fake_offset_reader import FIRST_ID, FakeOffsetReader

ReaderT = TypeVar("ReaderT", bound=MicroBatchReader)


class FakeStream(Generic[ReaderT]):
    """Of topic "t" with the logs it is given."""

    def __init__(self, reader: type[ReaderT], *logs: tuple[int, int], **options: str) -> None:
        self.time = MockTime()
        self.brokers = FakeOffsetReader(*logs)
        base = {"kafka.bootstrap.servers": "x:1", "subscribe": "t"}
        self.reader = reader(
            SourceOptions.for_stream(base | options),
            spark_schema(include_headers=False),
            time=self.time,
            offset_reader=self.brokers,  # type: ignore[arg-type]
        )

    def grow(self, *ends: int) -> None:
        for index, end in enumerate(ends):
            partition = TopicPartition("t", index)
            self.brokers.logs[partition] = (self.brokers.logs.get(partition, (0, 0))[0], end)

    def ranges(self, start: dict[str, Any], end: dict[str, Any]) -> list[str]:
        return [str(partition.value) for partition in self.reader.partitions(start, end)]


def at(*offsets: int) -> dict[str, Any]:
    partitions = {TopicPartition("t", index): offset for index, offset in enumerate(offsets)}
    return KafkaSourceOffset(partitions, {"t": FIRST_ID}).to_json()
