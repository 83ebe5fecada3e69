"""The settings of an admin client."""

from __future__ import annotations

from dataclasses import dataclass

from kafkapy.clients.client_config import CommonClientConfig
from kafkapy.common.config_def import Importance, at_least, config

_MAX_INT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class AdminClientConfig(CommonClientConfig):
    """What AdminClient takes as keyword arguments or properties.

    Ports: org.apache.kafka.clients.admin.AdminClientConfig
    """

    default_api_timeout_ms: int = config(
        "default.api.timeout.ms",
        60_000,
        at_least(0),
        doc="How long a call may take, retries included, unless it says otherwise itself.",
    )
    retries: int = config(
        "retries",
        _MAX_INT,
        at_least(0),
        importance=Importance.LOW,
        doc="How often a failed request is tried again, within the time limit of its call.",
    )
