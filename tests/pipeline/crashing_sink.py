"""The sink, stopping for ever at a chosen point of its commit, for who kills it there."""

import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSourceStreamWriter
from pyspark.sql.types import StructType

from kafkapy.clients.admin import AdminClient
from kafkapy.clients.admin.admin_client_config import AdminClientConfig
from kafkapy.clients.producer import PreparedTransaction
from kafkapy.pipeline.sink.kafka_sink_options import SinkOptions
from kafkapy.pipeline.sink.kafka_stream_writer import KafkaStreamWriter
from kafkapy.pipeline.spark.kafka_data_source import KafkaDataSource

BEFORE_DECISION = "before-decision"
AFTER_DECISION = "after-decision"
BETWEEN_ENDS = "between-ends"
AFTER_COMMIT = "after-commit"
CRASH_POINTS = (BEFORE_DECISION, AFTER_DECISION, BETWEEN_ENDS, AFTER_COMMIT)

_FOR_EVER_S = 3600


@dataclass(frozen=True, slots=True)
class Crash:
    """Where to stop, and the file that tells that it has."""

    point: str
    marker: str

    def reached(self, point: str) -> None:
        if point == self.point:
            Path(self.marker).write_text(point)
            time.sleep(_FOR_EVER_S)


class CrashingAdmin(AdminClient):
    """For the thread of a commit."""

    def __init__(self, crash: Crash, properties: dict[str, str]) -> None:
        super().__init__(properties=properties)
        self._crash = crash

    def alter_consumer_group_offsets(self, *args: Any, **kwargs: Any) -> Any:
        self._crash.reached(BEFORE_DECISION)
        return super().alter_consumer_group_offsets(*args, **kwargs)

    def end_transactions(
        self, transactions: Iterable[PreparedTransaction], *, is_commit: bool, **kwargs: Any
    ) -> Any:
        pending = list(transactions)
        self._crash.reached(AFTER_DECISION)
        super().end_transactions(pending[:1], is_commit=is_commit, **kwargs)
        self._crash.reached(BETWEEN_ENDS)
        results = super().end_transactions(pending, is_commit=is_commit, **kwargs)
        self._crash.reached(AFTER_COMMIT)
        return results


@dataclass(frozen=True)
class CrashingOptions(SinkOptions):
    """The sink's options, with clients that crash."""

    crash: Crash

    def open_admin(self) -> AdminClient:
        return CrashingAdmin(self.crash, self.clients.properties_for(AdminClientConfig))


class CrashingDataSource(KafkaDataSource):
    """format("kafkapy-crashing"): options crashAt and crashMarker."""

    @classmethod
    def name(cls) -> str:
        return "kafkapy-crashing"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        options = SinkOptions.of(self.options)
        crash = Crash(self.options["crashAt"], self.options["crashMarker"])
        crashing = CrashingOptions(
            options.topic,
            options.exactly_once,
            options.transactional_id_prefix,
            options.clients,
            crash,
        )
        return KafkaStreamWriter(crashing, schema)
