"""Which requests a listener takes."""

from typing import Protocol

from kafkapy.common.protocol.api_keys import ApiKeys


class ApiVersionManager(Protocol):
    """Says what this broker serves. Implementations are thread-safe.

    Ports: kafka.server.ApiVersionManager
    """

    def is_api_enabled(self, api_key: ApiKeys, version: int) -> bool: ...
