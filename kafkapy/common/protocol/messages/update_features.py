"""UpdateFeatures: raise or lower finalized feature levels."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, bool_, int8, int16, int32, string


class UpdateFeaturesRequest(
    Message, api_key=ApiKeys.UPDATE_FEATURES, versions="0-2", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.UpdateFeaturesRequestData"""

    class FeatureUpdateKey(Struct):
        feature: str = string("0+")
        max_version_level: int = int16("0+")
        allow_downgrade: bool = bool_("0")
        upgrade_type: int = int8("1+", default=1)

    timeout_ms: int = int32("0+", default=60000)
    feature_updates: list[FeatureUpdateKey] = array("FeatureUpdateKey", "0+")
    validate_only: bool = bool_("1+")


class UpdateFeaturesResponse(
    Message, api_key=ApiKeys.UPDATE_FEATURES, versions="0-2", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.UpdateFeaturesResponseData"""

    class UpdatableFeatureResult(Struct):
        feature: str = string("0+")
        error_code: int = int16("0+")
        error_message: str | None = string("0+", nullable="0+")

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
    results: list[UpdatableFeatureResult] = array("UpdatableFeatureResult", "0-1", ignorable=True)
