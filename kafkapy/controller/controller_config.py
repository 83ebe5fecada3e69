from dataclasses import dataclass

from kafkapy.common.config_def import ConfigType, Importance, at_least, config


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """The settings the controller and its channels to the brokers use.

    Ports: kafka.server.KafkaConfig
    """

    unclean_leader_election_enable: bool = config(
        "unclean.leader.election.enable",
        False,
        importance=Importance.HIGH,
        dynamic=True,
        doc="Whether a replica that is not in sync may become leader when no other is left, at the "
        "price of losing records.",
    )
    auto_leader_rebalance_enable: bool = config(
        "auto.leader.rebalance.enable",
        True,
        importance=Importance.HIGH,
        doc="Whether leadership is moved back to preferred replicas in the background.",
    )
    leader_imbalance_check_interval_seconds: int = config(
        "leader.imbalance.check.interval.seconds",
        300,
        at_least(1),
        type=ConfigType.LONG,
        importance=Importance.HIGH,
        doc="How often the controller looks whether leadership is out of balance.",
    )
    leader_imbalance_per_broker_percentage: int = config(
        "leader.imbalance.per.broker.percentage",
        10,
        at_least(0),
        importance=Importance.HIGH,
        doc="The share of a broker's preferred partitions that others may lead before leadership "
        "is moved back, in percent.",
    )
    controller_socket_timeout_ms: int = config(
        "controller.socket.timeout.ms",
        30_000,
        at_least(1),
        doc="How long the controller waits for a broker's connection or answer.",
    )
    delete_topic_enable: bool = config(
        "delete.topic.enable",
        True,
        importance=Importance.HIGH,
        doc="Whether topics can be deleted. When off, asking for it changes nothing.",
    )
    controlled_shutdown_enable: bool = config(
        "controlled.shutdown.enable",
        True,
        doc="Whether a stopping broker first hands its leaderships to others.",
    )
    controlled_shutdown_max_retries: int = config(
        "controlled.shutdown.max.retries",
        3,
        at_least(0),
        doc="How often a stopping broker asks again when its leaderships could not be moved.",
    )
    controlled_shutdown_retry_backoff_ms: int = config(
        "controlled.shutdown.retry.backoff.ms",
        5_000,
        at_least(0),
        type=ConfigType.LONG,
        doc="The pause between two such attempts.",
    )
