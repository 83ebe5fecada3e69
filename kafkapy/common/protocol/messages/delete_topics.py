"""DeleteTopics: delete topics by name or id."""

from __future__ import annotations

from uuid import UUID

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.schema import Message, Struct, array, int16, int32, string, uuid


class DeleteTopicsRequest(
    Message, api_key=ApiKeys.DELETE_TOPICS, versions="0-6", flexible="4+", deprecated="0"
):
    """Ports: org.apache.kafka.common.message.DeleteTopicsRequestData"""

    class DeleteTopicState(Struct):
        name: str | None = string("6+", nullable="6+", default=None)
        topic_id: UUID = uuid("6+")

    topics: list[DeleteTopicState] = array("DeleteTopicState", "6+")
    topic_names: list[str] = array(string, "0-5", ignorable=True)
    timeout_ms: int = int32("0+")


class DeleteTopicsResponse(Message, api_key=ApiKeys.DELETE_TOPICS, versions="0-6", flexible="4+"):
    """Ports: org.apache.kafka.common.message.DeleteTopicsResponseData"""

    class DeletableTopicResult(Struct):
        name: str | None = string("0+", nullable="6+")
        topic_id: UUID = uuid("6+", ignorable=True)
        error_code: int = int16("0+")
        error_message: str | None = string("5+", nullable="5+", default=None, ignorable=True)

    throttle_time_ms: int = int32("1+", ignorable=True)
    responses: list[DeletableTopicResult] = array("DeletableTopicResult", "0+")
