"""Which versions of the APIs a broker offers."""

from __future__ import annotations

from collections.abc import Iterable

from kafkapy.common.errors import UnsupportedVersionError
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.api_versions import ApiVersionsResponse
from kafkapy.common.protocol.versions import Versions


class NodeApiVersions:
    """What one broker said it supports. Immutable.

    Ports: org.apache.kafka.clients.NodeApiVersions
    """

    def __init__(self, versions: Iterable[tuple[int, int, int]]) -> None:
        """Of (API key, lowest version, highest version)."""
        self._versions = {key: Versions(low, high) for key, low, high in versions}

    @staticmethod
    def from_response(response: ApiVersionsResponse) -> NodeApiVersions:
        return NodeApiVersions(
            (api.api_key, api.min_version, api.max_version) for api in response.api_keys
        )

    @staticmethod
    def of_this_client() -> NodeApiVersions:
        """A broker that supports whatever this client does: for tests and bare connections."""
        return NodeApiVersions((int(api), api.min_version, api.max_version) for api in ApiKeys)

    def api_version(self, api_key: ApiKeys) -> Versions | None:
        """The broker's range; None when it does not have the API."""
        return self._versions.get(api_key)

    def latest_usable_version(
        self, api_key: ApiKeys, lowest: int | None = None, highest: int | None = None
    ) -> int:
        """The highest version that the broker, this client and the caller's range have in common.

        UnsupportedVersionError when there is none.
        """
        offered = self._versions.get(api_key)
        if offered is None:
            raise UnsupportedVersionError(f"The broker does not support {api_key.api_name}")
        low = api_key.min_version if lowest is None else max(lowest, api_key.min_version)
        high = api_key.max_version if highest is None else min(highest, api_key.max_version)
        usable = min(high, offered.highest)
        if usable < max(low, offered.lowest):
            raise UnsupportedVersionError(
                f"The broker supports {api_key.api_name} {offered}, not {Versions(low, high)}"
            )
        return usable

    def __str__(self) -> str:
        apis = ((ApiKeys.for_id(key), key, range_) for key, range_ in self._versions.items())
        return ", ".join(
            f"{'unknown' if api is None else api.api_name}({key}): {range_}"
            for api, key, range_ in apis
        )
