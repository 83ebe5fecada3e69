from enum import Enum


class ElectionType(Enum):
    """Ports: org.apache.kafka.common.ElectionType"""

    PREFERRED = 0
    UNCLEAN = 1
