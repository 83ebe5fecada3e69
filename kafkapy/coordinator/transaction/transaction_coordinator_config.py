"""Settings of the transaction coordinator."""

from dataclasses import dataclass

from kafkapy.common.config_def import ConfigType, Importance, at_least, config

_SECOND_MS = 1000
_MINUTE_MS = 60 * _SECOND_MS
_HOUR_MS = 60 * _MINUTE_MS
_DAY_MS = 24 * _HOUR_MS


@dataclass(frozen=True, slots=True)
class TransactionCoordinatorConfig:
    """Ports: org.apache.kafka.coordinator.transaction.TransactionStateManagerConfig,
    org.apache.kafka.coordinator.transaction.TransactionLogConfig
    """

    transaction_max_timeout_ms: int = config(
        "transaction.max.timeout.ms",
        15 * _MINUTE_MS,
        at_least(1),
        importance=Importance.HIGH,
        doc="The longest time-out that a producer may ask for its transactions.",
    )
    transactional_id_expiration_ms: int = config(
        "transactional.id.expiration.ms",
        7 * _DAY_MS,
        at_least(1),
        importance=Importance.HIGH,
        doc="How long a transactional id without a transaction is remembered.",
    )
    abort_timed_out_transactions_interval_ms: int = config(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10 * _SECOND_MS,
        at_least(1),
        importance=Importance.LOW,
        doc="How often to look for transactions that have timed out, to abort them.",
    )
    remove_expired_transactional_ids_interval_ms: int = config(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        _HOUR_MS,
        at_least(1),
        importance=Importance.LOW,
        doc="How often to look for transactional ids that have expired.",
    )
    transaction_topic_num_partitions: int = config(
        "transaction.state.log.num.partitions",
        50,
        at_least(1),
        importance=Importance.HIGH,
        doc="Partitions of __transaction_state; not to be changed once the topic is there.",
    )
    transaction_topic_replication_factor: int = config(
        "transaction.state.log.replication.factor",
        3,
        at_least(1),
        type=ConfigType.SHORT,
        importance=Importance.HIGH,
        doc="Replicas of __transaction_state. With fewer brokers than this it cannot be created.",
    )
    transaction_topic_min_isr: int = config(
        "transaction.state.log.min.isr",
        2,
        at_least(1),
        importance=Importance.HIGH,
        doc="Replicas of __transaction_state that must have a write for it to succeed.",
    )
    transaction_topic_segment_bytes: int = config(
        "transaction.state.log.segment.bytes",
        100 * 1024 * 1024,
        at_least(1),
        importance=Importance.HIGH,
        doc="Segment size of __transaction_state: small, so that compaction and loading are quick.",
    )
    transaction_log_load_buffer_size: int = config(
        "transaction.state.log.load.buffer.size",
        5 * 1024 * 1024,
        at_least(1),
        importance=Importance.HIGH,
        doc="How much of __transaction_state is read at a time when it is loaded, in bytes.",
    )

    def transaction_topic_configs(self) -> dict[str, str]:
        """What __transaction_state is created with."""
        return {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(self.transaction_topic_min_isr),
            "segment.bytes": str(self.transaction_topic_segment_bytes),
            "unclean.leader.election.enable": "false",
        }
