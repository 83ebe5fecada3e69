"""FindCoordinator: find the broker that coordinates a group, a transaction or a share partition."""

from __future__ import annotations

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int8, int16, int32, string


class FindCoordinatorRequest(
    Message, api_key=ApiKeys.FIND_COORDINATOR, versions="0-6", flexible="3+", deprecated="0"
):
    """Ports: org.apache.kafka.common.message.FindCoordinatorRequestData"""

    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: list[str] = array(string, "4+")


class FindCoordinatorResponse(
    Message, api_key=ApiKeys.FIND_COORDINATOR, versions="0-6", flexible="3+"
):
    """Ports: org.apache.kafka.common.message.FindCoordinatorResponseData"""

    class Coordinator(Struct):
        key: str = string("4+")
        node_id: int = int32("4+")
        host: str = string("4+")
        port: int = int32("4+")
        error_code: int = int16("4+")
        error_message: str | None = string("4+", nullable="4+", ignorable=True)

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", nullable="1-3", ignorable=True)
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: list[Coordinator] = array("Coordinator", "4+")
