"""Settings of the replica manager."""

from dataclasses import dataclass

from kafkapy.common.config_def import ConfigType, Importance, at_least, config


@dataclass(frozen=True, slots=True)
class ReplicaManagerConfig:
    """What a broker may decide about the replicas it hosts.

    Ports: org.apache.kafka.server.config.ReplicationConfigs
    """

    replica_lag_time_max_ms: int = config(
        "replica.lag.time.max.ms",
        30_000,
        at_least(1),
        type=ConfigType.LONG,
        importance=Importance.HIGH,
        doc="A follower that has not caught up with the leader's log end for this long leaves the "
        "ISR.",
    )
    replica_high_watermark_checkpoint_interval_ms: int = config(
        "replica.high.watermark.checkpoint.interval.ms",
        5_000,
        at_least(1),
        type=ConfigType.LONG,
        importance=Importance.HIGH,
        doc="How often high watermarks are written to replication-offset-checkpoint.",
    )
    producer_purgatory_purge_interval_requests: int = config(
        "producer.purgatory.purge.interval.requests",
        1_000,
        at_least(0),
        doc="Completed produce requests that may stay in the purgatory's watch lists.",
    )
    fetch_purgatory_purge_interval_requests: int = config(
        "fetch.purgatory.purge.interval.requests",
        1_000,
        at_least(0),
        doc="Completed fetch requests that may stay in the purgatory's watch lists.",
    )
    delete_records_purgatory_purge_interval_requests: int = config(
        "delete.records.purgatory.purge.interval.requests",
        1,
        at_least(0),
        importance=Importance.LOW,
        doc="Completed DeleteRecords requests that may stay in the purgatory's watch lists.",
    )
