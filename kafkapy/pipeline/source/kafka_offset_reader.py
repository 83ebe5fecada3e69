"""Asks brokers which partitions there are, and for their offsets."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from types import TracebackType
from typing import Self, TypeVar

from kafkapy.clients.admin.admin_client import AdminClient
from kafkapy.clients.admin.admin_client_config import AdminClientConfig
from kafkapy.clients.admin.offset_spec import IsolationLevel, OffsetSpec
from kafkapy.clients.consumer.offset_and_metadata import OffsetAndMetadata
from kafkapy.clients.deadline import Deadline
from kafkapy.common.errors import (
    InvalidConfigurationError,
    KafkaError,
    RequestTimeoutError,
    RetriableError,
)
from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.kafka_client_options import BOOTSTRAP_SERVERS, PREFIX, option_error
from kafkapy.pipeline.pipeline_errors import PipelineError
from kafkapy.pipeline.source.consumer_strategy import AssignedPartitions
from kafkapy.pipeline.source.kafka_source_options import SourceOptions
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

T = TypeVar("T")
_COMMIT_TIMEOUT_MS = 10_000
_GONE_AFTER_MS = 3_000
_GONE_INTERVAL_MS = 250
NO_MATCH = -1


class KafkaOffsetReader:
    """The driver's connection to the brokers, made when first used. For one thread.

    What passes by itself is tried again: by the admin client within default.api.timeout.ms, and
    what it gives up fetchOffset.numRetries times more. PipelineError says what could not be had.

    Ports: org.apache.spark.sql.kafka010.KafkaOffsetReaderAdmin
    """

    def __init__(self, options: SourceOptions, time: Time) -> None:
        # constant after construction
        self._options = options
        self._time = time
        self._isolation_level = (
            IsolationLevel.READ_COMMITTED
            if options.consumer_config().is_read_committed
            else IsolationLevel.READ_UNCOMMITTED
        )
        self._admin: AdminClient | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        admin, self._admin = self._admin, None
        if admin is not None:
            admin.close()

    def assigned_partitions(self, known: Collection[TopicPartition] = ()) -> AssignedPartitions:
        """What there is now. When something `known` is not, that is not believed at once: a broker
        that has just started may not have heard of it yet."""
        strategy = self._options.strategy
        what = f"which partitions there are ({strategy})"
        deadline = Deadline(self._time, _GONE_AFTER_MS)
        while True:
            found = self._ask(what, strategy.assigned_partitions)
            if found.partitions.issuperset(known) or deadline.is_expired:
                return found
            self._time.sleep(_GONE_INTERVAL_MS)

    def earliest(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        return self._list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))

    def latest(
        self,
        partitions: Collection[TopicPartition],
        known: Mapping[TopicPartition, int] | None = None,
    ) -> dict[TopicPartition, int]:
        """Where the logs end; with read_committed, where the first open transaction begins.

        One that is before what is `known` is asked for again: a broker that has just become leader
        may not know yet.
        """
        attempts = 0
        while True:
            found = self._list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
            behind = [p for p, offset in (known or {}).items() if found.get(p, offset) < offset]
            if not behind or attempts >= self._options.fetch_offset_num_retries:
                return found
            attempts += 1
            self._time.sleep(self._options.fetch_offset_retry_interval_ms)

    def at_times(self, timestamps_ms: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The first offset at or after each time; NO_MATCH where there is none."""
        return self._list_offsets(timestamps_ms)

    def commit_to_group(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """KafkaError when that is not done for all of them."""
        committed = {p: OffsetAndMetadata(offset) for p, offset in offsets.items()}
        self._client().alter_consumer_group_offsets(group, committed, timeout_ms=_COMMIT_TIMEOUT_MS)

    def _list_offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        if not wanted:
            return {}
        results = self._ask(
            f"the offsets of {', '.join(map(str, sorted(wanted)))}",
            lambda admin: admin.list_offsets(wanted, isolation_level=self._isolation_level),
        )
        return {partition: info.offset for partition, info in results.items()}

    def _ask(self, what: str, question: Callable[[AdminClient], T]) -> T:
        retries = 0
        while True:
            try:
                return question(self._client())
            except KafkaError as error:
                # A time-out has been tried again for all the time there was.
                passing = isinstance(error, RetriableError) and not isinstance(
                    error, RequestTimeoutError
                )
                if not passing or retries >= self._options.fetch_offset_num_retries:
                    servers = self._options.client.properties[BOOTSTRAP_SERVERS]
                    raise PipelineError(
                        f"the brokers at {servers} ({PREFIX}{BOOTSTRAP_SERVERS}) did not tell "
                        f"{what}: {error or type(error).__name__}"
                    ) from error
                logger.warning("Asking for %s again: %s", what, error)
                retries += 1
                self._time.sleep(self._options.fetch_offset_retry_interval_ms)

    def _client(self) -> AdminClient:
        if self._admin is None:
            properties = self._options.client.properties_for(AdminClientConfig)
            try:
                self._admin = AdminClient(properties=properties, time=self._time)
            except InvalidConfigurationError as error:
                raise option_error(error) from error
        return self._admin
