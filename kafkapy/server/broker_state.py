from enum import IntEnum


class BrokerState(IntEnum):
    """The values are those of the BrokerState metric.

    Ports: org.apache.kafka.metadata.BrokerState
    """

    NOT_RUNNING = 0
    STARTING = 1
    RECOVERY = 2
    RUNNING = 3
    SHUTTING_DOWN = 7
