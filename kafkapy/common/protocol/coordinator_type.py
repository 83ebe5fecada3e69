"""What FindCoordinator can look for."""

from enum import IntEnum


class CoordinatorType(IntEnum):
    """Ports: org.apache.kafka.common.requests.FindCoordinatorRequest.CoordinatorType"""

    GROUP = 0
    TRANSACTION = 1
