"""Puts a consumer together."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from kafkapy.clients.client_utils import create_network_client, parse_and_validate_addresses
from kafkapy.clients.consumer.assignors.consumer_partition_assignor import (
    ConsumerPartitionAssignor,
)
from kafkapy.clients.consumer.assignors.cooperative_sticky_assignor import (
    CooperativeStickyAssignor,
)
from kafkapy.clients.consumer.assignors.range_assignor import RangeAssignor
from kafkapy.clients.consumer.assignors.round_robin_assignor import RoundRobinAssignor
from kafkapy.clients.consumer.assignors.sticky_assignor import StickyAssignor
from kafkapy.clients.consumer.consumer_config import ConsumerConfig
from kafkapy.clients.consumer.consumer_coordinator import ConsumerCoordinator
from kafkapy.clients.consumer.consumer_interceptor import ConsumerInterceptors
from kafkapy.clients.consumer.consumer_metadata import ConsumerMetadata
from kafkapy.clients.consumer.consumer_metrics import ConsumerMetrics
from kafkapy.clients.consumer.consumer_network_client import ConsumerNetworkClient
from kafkapy.clients.consumer.fetch_config import FetchConfig
from kafkapy.clients.consumer.fetcher import Fetcher
from kafkapy.clients.consumer.group_rebalance_config import GroupRebalanceConfig
from kafkapy.clients.consumer.offset_fetcher import OffsetFetcher
from kafkapy.clients.consumer.offset_reset_strategy import OffsetResetStrategy
from kafkapy.clients.consumer.subscription_state import SubscriptionState
from kafkapy.clients.consumer.topic_metadata_fetcher import TopicMetadataFetcher
from kafkapy.clients.deadline import Deadline
from kafkapy.common.config_def import InvalidValueError
from kafkapy.utils.backoff import ExponentialBackoff
from kafkapy.utils.time import Time

# The requests that a consumer has on their way to one broker are few: fetches are one at a time.
_MAX_IN_FLIGHT_PER_CONNECTION = 100
_ASSIGNORS: tuple[type[ConsumerPartitionAssignor], ...] = (
    RangeAssignor,
    RoundRobinAssignor,
    StickyAssignor,
    CooperativeStickyAssignor,
)


@dataclass(frozen=True, slots=True)
class ConsumerParts:
    """What a KafkaConsumer consists of; `coordinator` is None without a group.

    Ports: org.apache.kafka.clients.consumer.internals.ClassicKafkaConsumer
    """

    subscriptions: SubscriptionState
    metadata: ConsumerMetadata
    client: ConsumerNetworkClient
    coordinator: ConsumerCoordinator | None
    fetcher: Fetcher
    offset_fetcher: OffsetFetcher
    topic_metadata_fetcher: TopicMetadataFetcher
    interceptors: ConsumerInterceptors
    metrics: ConsumerMetrics

    @staticmethod
    def build(
        config: ConsumerConfig,
        time: Time,
        *,
        client_id: str,
        is_auto_commit_explicit: bool,
    ) -> ConsumerParts:
        """Raises InvalidValueError for settings that do not go together."""
        auto_commit = config.enable_auto_commit
        if config.group_id is None and auto_commit:
            if is_auto_commit_explicit:
                raise InvalidValueError("enable.auto.commit", "true", "there is no group.id")
            auto_commit = False
        assignors = [resolve_assignor(each) for each in config.partition_assignment_strategy]
        if len({assignor.name for assignor in assignors}) < len(assignors):
            raise InvalidValueError(
                "partition.assignment.strategy", "", "it names an assignor more than once"
            )
        subscriptions = SubscriptionState(OffsetResetStrategy(config.auto_offset_reset))
        metrics = ConsumerMetrics(time)
        metadata = ConsumerMetadata(
            subscriptions,
            refresh_backoff_ms=config.retry_backoff_ms,
            refresh_backoff_max_ms=config.retry_backoff_max_ms,
            metadata_expire_ms=config.metadata_max_age_ms,
            include_internal_topics=not config.exclude_internal_topics,
            allow_auto_topic_creation=config.allow_auto_create_topics,
        )
        metadata.bootstrap(
            parse_and_validate_addresses(config.bootstrap_servers, config.client_dns_lookup)
        )
        client = ConsumerNetworkClient(
            create_network_client(
                config,
                time,
                client_id=client_id,
                max_in_flight_requests_per_connection=_MAX_IN_FLIGHT_PER_CONNECTION,
                metadata=metadata,
            ),
            metadata,
            time,
            retry_backoff_ms=config.retry_backoff_ms,
            request_timeout_ms=config.request_timeout_ms,
            max_poll_timeout_ms=config.heartbeat_interval_ms,
        )
        interceptors = ConsumerInterceptors(config.interceptor_classes)
        coordinator = None
        if config.group_id is not None:
            coordinator = ConsumerCoordinator(
                config=GroupRebalanceConfig.from_consumer(config, config.group_id),
                client=client,
                metrics=metrics,
                time=time,
                assignors=assignors,
                metadata=metadata,
                subscriptions=subscriptions,
                interceptors=interceptors,
                auto_commit_interval_ms=config.auto_commit_interval_ms if auto_commit else None,
                rack_id=config.client_rack,
            )
        offset_fetcher = OffsetFetcher(
            client=client,
            metadata=metadata,
            subscriptions=subscriptions,
            time=time,
            retry_backoff_ms=config.retry_backoff_ms,
            request_timeout_ms=config.request_timeout_ms,
            read_committed=config.is_read_committed,
        )
        fetcher = Fetcher(
            client=client,
            metadata=metadata,
            subscriptions=subscriptions,
            config=FetchConfig.from_consumer(config),
            metrics=metrics,
            time=time,
            on_new_leader=offset_fetcher.on_new_leader,
        )
        backoff = ExponentialBackoff(config.retry_backoff_ms, 2, config.retry_backoff_max_ms)
        return ConsumerParts(
            subscriptions=subscriptions,
            metadata=metadata,
            client=client,
            coordinator=coordinator,
            fetcher=fetcher,
            offset_fetcher=offset_fetcher,
            topic_metadata_fetcher=TopicMetadataFetcher(client, time, backoff),
            interceptors=interceptors,
            metrics=metrics,
        )

    def close(self, deadline: Deadline, *, autocommit: bool) -> None:
        """Everything is closed, whatever raises; the first error is raised at the end."""
        try:
            if self.coordinator is not None:
                self.coordinator.close(deadline, autocommit=autocommit)
            else:
                self.client.disable_wakeups()
        finally:
            try:
                self.fetcher.close(deadline)
            finally:
                self.client.close()
                self.interceptors.close()


def resolve_assignor(given: Any) -> ConsumerPartitionAssignor:
    """From its name, the name of Kafka's class, a class or an instance."""
    if isinstance(given, ConsumerPartitionAssignor):
        return given
    if isinstance(given, type) and issubclass(given, ConsumerPartitionAssignor):
        return given()
    known = _names(_ASSIGNORS)
    if isinstance(given, str) and (cls := known.get(given.rpartition(".")[2])) is not None:
        return cls()
    raise InvalidValueError(
        "partition.assignment.strategy",
        repr(given),
        f"expected one of {', '.join(cls.name for cls in _ASSIGNORS)}, or a"
        " ConsumerPartitionAssignor",
    )


def _names(
    classes: Iterable[type[ConsumerPartitionAssignor]],
) -> dict[str, type[ConsumerPartitionAssignor]]:
    return {name: cls for cls in classes for name in (cls.name, cls.__name__)}
