"""Settings as the protocol speaks of them; the numbers are those of the protocol."""

from __future__ import annotations

from enum import IntEnum

from kafkapy.common.protocol_enum import ProtocolEnum


class ConfigSource(ProtocolEnum):
    """Where a value comes from.

    Ports: org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource
    """

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    CLIENT_METRICS_CONFIG = 7
    GROUP_CONFIG = 8


class AlterOperation(IntEnum):
    """Ports: org.apache.kafka.clients.admin.AlterConfigOp.OpType"""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3
