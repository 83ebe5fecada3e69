"""BrokerHeartbeat: a broker reports to the KRaft controller that it lives."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, array, bool_, int16, int32, int64, uuid


class BrokerHeartbeatRequest(
    Message, api_key=ApiKeys.BROKER_HEARTBEAT, versions="0-1", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.BrokerHeartbeatRequestData"""

    broker_id: int = int32("0+")
    broker_epoch: int = int64("0+", default=-1)
    current_metadata_offset: int = int64("0+")
    want_fence: bool = bool_("0+")
    want_shut_down: bool = bool_("0+")
    offline_log_dirs: list[UUID] = array(uuid, "1+", tag=0)


class BrokerHeartbeatResponse(
    Message, api_key=ApiKeys.BROKER_HEARTBEAT, versions="0-1", flexible="0+"
):
    """Ports: org.apache.kafka.common.message.BrokerHeartbeatResponseData"""

    throttle_time_ms: int = int32("0+")
    error_code: int = int16("0+")
    is_caught_up: bool = bool_("0+")
    is_fenced: bool = bool_("0+", default=True)
    should_shut_down: bool = bool_("0+")
