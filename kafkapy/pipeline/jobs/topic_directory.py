"""The topics that a pipeline reads and writes, as the brokers have them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kafkapy.clients.admin import AdminClient, OffsetSpec
from kafkapy.clients.admin.admin_client_config import AdminClientConfig
from kafkapy.clients.admin.offset_spec import IsolationLevel
from kafkapy.clients.consumer.consumer_config import ConsumerConfig
from kafkapy.common.errors import AuthenticationError, InvalidConfigurationError, KafkaError
from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.jobs.pipeline_config import (
    DeadLetterTopic,
    PipelineConfig,
    TopicSink,
    TopicSource,
)
from kafkapy.pipeline.kafka_client_options import (
    BOOTSTRAP_SERVERS,
    PREFIX,
    KafkaClientOptions,
    option_error,
)
from kafkapy.pipeline.pipeline_errors import OptionError

_SERVERS = f"{PREFIX}{BOOTSTRAP_SERVERS}"
# In a source's JSON of offsets.
EARLIEST = -2
# The brokers are there or they are not: nobody should wait for a minute to learn it.
_TIMEOUT_MS = 15_000

Offsets = dict[str, dict[str, int]]


class TopicDirectory:
    """Asks the brokers before Spark does, so that a missing topic or an unreachable broker is one
    line, after a bounded time. For one thread.
    """

    def __init__(self, config: PipelineConfig, *, timeout_ms: int = _TIMEOUT_MS) -> None:
        # constant after construction
        self._config = config
        self._timeout_ms = timeout_ms

    def check(self) -> None:
        """OptionError for the first topic that is not there, or broker that does not answer."""
        config = self._config
        for source in config.topic_sources():
            place = f"{config.file}: [[source]] {source.name}"
            with_options = source_options(source)
            if source.topic_pattern is not None:
                self._compiled(source, place)
                self._existing(place, with_options)
            else:
                self._check_topics(place, "topics", with_options, source.topics)
        for sink in config.sinks:
            if isinstance(sink, TopicSink):
                topics = () if sink.topic is None else (sink.topic,)
                place = f"{config.file}: [[sink]] {sink.name}"
                self._check_topics(place, "topic", sink_options(sink), topics)
        if isinstance(config.dead_letters, DeadLetterTopic):
            letters = config.dead_letters
            place = f"{config.file}: [dead_letters]"
            self._check_topics(place, "topic", sink_options(letters), (letters.topic,))

    def latest_offsets(self, source: TopicSource) -> Offsets:
        """Where each partition ends now, for a reader with the source's isolation level."""
        place = f"{self._config.file}: [[source]] {source.name}"
        options = source_options(source)
        partitions = self._partitions(source)
        with self._admin(place, options) as admin:
            consumer = KafkaClientOptions.for_source(options).config(ConsumerConfig)
            level = IsolationLevel(int(consumer.is_read_committed))
            try:
                listed = admin.list_offsets(
                    dict.fromkeys(partitions, OffsetSpec.LATEST), isolation_level=level
                )
            except KafkaError as e:
                raise self._unreachable(place, options, e) from e
        found: Offsets = {}
        for partition in partitions:
            by_partition = found.setdefault(partition.topic, {})
            by_partition[str(partition.partition)] = listed[partition].offset
        return found

    def with_new_partitions(self, source: TopicSource, offsets: Offsets) -> Offsets:
        """Offsets of an earlier day for the partitions that are there now: those that have been
        added since are read from their beginning.
        """
        found: Offsets = {}
        for tp in self._partitions(source):
            at = offsets.get(tp.topic, {}).get(str(tp.partition), EARLIEST)
            found.setdefault(tp.topic, {})[str(tp.partition)] = at
        return found

    def _partitions(self, source: TopicSource) -> list[TopicPartition]:
        place = f"{self._config.file}: [[source]] {source.name}"
        options = source_options(source)
        topics = source.topics
        if source.topic_pattern is not None:
            pattern = self._compiled(source, place)
            topics = tuple(t for t in self._existing(place, options) if pattern.fullmatch(t))
        with self._admin(place, options) as admin:
            try:
                described = admin.describe_topics(topics)
            except KafkaError as e:
                raise self._unreachable(place, options, e) from e
        return [
            TopicPartition(topic.name, info.partition)
            for topic in described.values()
            for info in topic.partitions
        ]

    def _compiled(self, source: TopicSource, place: str) -> re.Pattern[str]:
        try:
            return re.compile(source.topic_pattern or "")
        except re.error as e:
            raise OptionError(f"{place} topic_pattern", f"no regular expression: {e}") from e

    def _check_topics(
        self, place: str, key: str, options: Mapping[str, str], topics: tuple[str, ...]
    ) -> None:
        existing = self._existing(place, options)
        for topic in topics:
            if topic not in existing:
                servers = options[_SERVERS]
                raise OptionError(f"{place} {key}", f"there is no topic {topic!r} at {servers}")

    def _existing(self, place: str, options: Mapping[str, str]) -> set[str]:
        with self._admin(place, options) as admin:
            try:
                return set(admin.list_topics(list_internal=True))
            except KafkaError as e:
                raise self._unreachable(place, options, e) from e

    def _admin(self, place: str, options: Mapping[str, str]) -> AdminClient:
        try:
            client = KafkaClientOptions.for_source(options)
            properties = client.properties_for(AdminClientConfig)
            properties.setdefault("default.api.timeout.ms", str(self._timeout_ms))
            try:
                return AdminClient(properties=properties)
            except InvalidConfigurationError as e:
                raise option_error(e) from e
        except OptionError as e:
            is_ours = e.option == _SERVERS
            key = "bootstrap_servers" if is_ours else f"options.{e.option}"
            raise OptionError(f"{place} {key}", e.reason) from e

    def _unreachable(self, place: str, options: Mapping[str, str], e: KafkaError) -> OptionError:
        if isinstance(e, AuthenticationError):
            # It names the broker. What is wrong, or missing, are the settings of TLS and SASL.
            return OptionError(f"{place} options", str(e))
        servers = options[_SERVERS]
        return OptionError(f"{place} bootstrap_servers", f"no answer from {servers}: {e}")


def source_options(source: TopicSource) -> dict[str, str]:
    return {**source.options, _SERVERS: source.bootstrap_servers}


def sink_options(sink: TopicSink | DeadLetterTopic) -> dict[str, str]:
    return {**sink.options, _SERVERS: sink.bootstrap_servers}
