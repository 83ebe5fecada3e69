"""ControllerRegistration: a controller registers with the active KRaft controller."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import (
    Message,
    Struct,
    array,
    bool_,
    int16,
    int32,
    string,
    uint16,
    uuid,
)


class ControllerRegistrationRequest(
    Message, api_key=ApiKeys.CONTROLLER_REGISTRATION, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ControllerRegistrationRequestData"""

    class Listener(Struct):
        name: str = string("0+")
        host: str = string("0+")
        port: int = uint16("0+")
        security_protocol: int = int16("0+")

    class Feature(Struct):
        name: str = string("0+")
        min_supported_version: int = int16("0+")
        max_supported_version: int = int16("0+")

    controller_id: int = int32("0+")
    incarnation_id: UUID = uuid("0+")
    zk_migration_ready: bool = bool_("0+")
    listeners: list[Listener] = array("Listener", "0+")
    features: list[Feature] = array("Feature", "0+")


class ControllerRegistrationResponse(
    Message, api_key=ApiKeys.CONTROLLER_REGISTRATION, versions="0", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.ControllerRegistrationResponseData"""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    error_message: str | None = string("0+", nullable="0+")
