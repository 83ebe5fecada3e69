"""Settings of producer state, shared by all logs of a broker."""

from dataclasses import dataclass


@dataclass(slots=True)
class ProducerStateManagerConfig:
    """One for all logs of a broker; the fields may be set at any time, each by itself.

    Ports: org.apache.kafka.storage.internals.log.ProducerStateManagerConfig
    """

    producer_id_expiration_ms: int = 86_400_000
    check_interval_ms: int = 600_000
    transaction_verification_enabled: bool = False
