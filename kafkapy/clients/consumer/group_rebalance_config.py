"""What membership in a group needs of a client's settings."""

from __future__ import annotations

from dataclasses import dataclass

from kafkapy.clients.consumer.consumer_config import ConsumerConfig


@dataclass(frozen=True, slots=True)
class GroupRebalanceConfig:
    """Ports: org.apache.kafka.clients.GroupRebalanceConfig"""

    group_id: str
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    rebalance_timeout_ms: int = 300_000
    heartbeat_interval_ms: int = 3_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000

    @staticmethod
    def from_consumer(config: ConsumerConfig, group_id: str) -> GroupRebalanceConfig:
        return GroupRebalanceConfig(
            group_id=group_id,
            group_instance_id=config.group_instance_id,
            session_timeout_ms=config.session_timeout_ms,
            rebalance_timeout_ms=config.max_poll_interval_ms,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            retry_backoff_ms=config.retry_backoff_ms,
            retry_backoff_max_ms=config.retry_backoff_max_ms,
        )
