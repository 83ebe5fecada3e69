"""Which APIs are offered, in which versions."""

from collections.abc import Iterable

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.api_versions import ApiVersionsResponse


class ApiVersionManager:
    """Advertises exactly the APIs that have a handler. Immutable.

    Ports: kafka.server.ApiVersionManager
    """

    def __init__(self, enabled: Iterable[ApiKeys]) -> None:
        self._enabled = frozenset(enabled)
        # Made once: clients ask for it whenever they connect.
        self._response = ApiVersionsResponse(
            api_keys=[_version(key) for key in sorted(self._enabled)]
        )

    def is_api_enabled(self, api_key: ApiKeys, version: int) -> bool:
        return api_key in self._enabled and api_key.min_version <= version <= api_key.max_version

    def api_versions_response(self) -> ApiVersionsResponse:
        """Shared by all who ask: not to be changed."""
        return self._response

    def unsupported_version_response(self) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            error_code=Errors.UNSUPPORTED_VERSION.code, api_keys=[_version(ApiKeys.API_VERSIONS)]
        )


def _version(api_key: ApiKeys) -> ApiVersionsResponse.ApiVersion:
    return ApiVersionsResponse.ApiVersion(
        api_key=api_key.value, min_version=api_key.min_version, max_version=api_key.max_version
    )
