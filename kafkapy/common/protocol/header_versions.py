"""Which header stands in front of a request and of its response.

| request header | of |
|---|---|
| v0 | ControlledShutdown v0 only: it has no client id |
| v1 | other requests without flexible fields |
| v2 | flexible requests; the client id keeps its old form, so that any version can be parsed |

Responses have header v1 when flexible, else v0. ApiVersions responses always have v0, because the
client cannot know yet what the broker understands.
"""

from typing import Final

from kafkapy.common.protocol.api_keys import ApiKeys

# Kept at hand: asking an enum for a member is slow.
_API_VERSIONS: Final = ApiKeys.API_VERSIONS
_CONTROLLED_SHUTDOWN: Final = ApiKeys.CONTROLLED_SHUTDOWN


def request_header_version(api_key: ApiKeys, api_version: int) -> int:
    """Also answers for versions that do not exist: ApiVersions must be parsed at any of them."""
    if api_version >= api_key.first_flexible_version:
        return 2
    return 0 if api_key is _CONTROLLED_SHUTDOWN and api_version == 0 else 1


def response_header_version(api_key: ApiKeys, api_version: int) -> int:
    if api_key is _API_VERSIONS:
        return 0
    return 1 if api_version >= api_key.first_flexible_version else 0
