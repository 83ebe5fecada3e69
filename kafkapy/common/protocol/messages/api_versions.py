"""ApiVersions: list the APIs, versions and features that a server offers."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    bool_,
    int16,
    int32,
    int64,
    string,
)


class ApiVersionsRequest(Message, api_key=ApiKeys.API_VERSIONS, versions="0-4", flexible="3+"):
    """Ports: org.apache.kafka.common.message.ApiVersionsRequestData"""

    client_software_name: str = string("3+", ignorable=True)
    client_software_version: str = string("3+", ignorable=True)


class ApiVersionsResponse(Message, api_key=ApiKeys.API_VERSIONS, versions="0-4", flexible="3+"):
    """Ports: org.apache.kafka.common.message.ApiVersionsResponseData"""

    class ApiVersion(Struct):
        api_key: int = int16("0+")
        min_version: int = int16("0+")
        max_version: int = int16("0+")

    class SupportedFeatureKey(Struct):
        name: str = string("3+")
        min_version: int = int16("3+")
        max_version: int = int16("3+")

    class FinalizedFeatureKey(Struct):
        name: str = string("3+")
        max_version_level: int = int16("3+")
        min_version_level: int = int16("3+")

    error_code: int = int16("0+")
    api_keys: list[ApiVersion] = array("ApiVersion", "0+")
    throttle_time_ms: int = int32("1+", ignorable=True)
    supported_features: list[SupportedFeatureKey] = array(
        "SupportedFeatureKey", "3+", tag=0, ignorable=True
    )
    finalized_features_epoch: int = int64("3+", default=-1, tag=1, ignorable=True)
    finalized_features: list[FinalizedFeatureKey] = array(
        "FinalizedFeatureKey", "3+", tag=2, ignorable=True
    )
    zk_migration_ready: bool = bool_("3+", tag=3, ignorable=True)
