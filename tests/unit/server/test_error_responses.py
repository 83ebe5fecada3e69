"""Whatever fails can be answered, in the version in which it was asked."""

from collections.abc import Iterator
from random import Random
from typing import Any
from uuid import UUID

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.message_registry import request_class, response_class
from kafkapy.common.protocol.messages.describe_groups import DescribeGroupsRequest
from kafkapy.common.protocol.messages.fetch import FetchRequest
from kafkapy.common.protocol.messages.metadata import MetadataRequest
from kafkapy.common.protocol.messages.produce import ProduceRequest
from kafkapy.common.protocol.messages.write_txn_markers import WriteTxnMarkersRequest
from kafkapy.common.protocol.schema import Message, Struct
from kafkapy.network.request_channel import Request, RequestContext
from kafkapy.server.apis.error_responses import error_response
from kafkapy.server.kafka_apis import ENABLED_APIS
from tests.unit.common.protocol.message_samples import Sampler

_ERROR = Errors.NOT_CONTROLLER
# Their responses have no place for an error: a client that asked for all gets nothing.
_MAY_BE_EMPTY = {
    ApiKeys.METADATA,
    ApiKeys.DESCRIBE_TOPIC_PARTITIONS,
    ApiKeys.DESCRIBE_LOG_DIRS,
}


def _request(api_key: ApiKeys, version: int, body: Message | None) -> Request:
    header = RequestHeader(api_key=api_key, api_version=version, correlation_id=1, client_id="c")
    return Request(RequestContext(header, "connection", "127.0.0.1"), body)


def _error_codes(message: Any) -> Iterator[int]:
    """Every error code anywhere in a message."""
    if isinstance(message, Struct):
        for field in message.FIELDS:
            value = getattr(message, field.name)
            if field.name in ("error_code", "partition_error_code"):
                yield value
            else:
                yield from _error_codes(value)
    elif isinstance(message, list):
        for element in message:
            yield from _error_codes(element)


@pytest.mark.parametrize(
    ("api_key", "version"),
    [
        pytest.param(api_key, version, id=f"{api_key.api_name}-v{version}")
        for api_key in sorted(ENABLED_APIS)
        for version in range(api_key.min_version, api_key.max_version + 1)
    ],
)
def test_a_failed_request_is_answered_with_the_error(api_key: ApiKeys, version: int) -> None:
    sampler = Sampler(Random(version), counts=(1, 2), unknown_tags=False)
    body = sampler.message(request_class(api_key), version)

    response = error_response(_request(api_key, version, body), _ERROR, "no")

    assert isinstance(response, response_class(api_key))
    decoded = type(response).decode(response.encode(version), version)
    codes = set(_error_codes(decoded))
    assert codes <= {_ERROR.code, Errors.NONE.code}
    assert _ERROR.code in codes or api_key in _MAY_BE_EMPTY


def test_api_versions_that_could_not_be_read_has_no_error_response() -> None:
    assert error_response(_request(ApiKeys.API_VERSIONS, 99, None), _ERROR, "no") is None


def _answer(body: Message, version: int) -> Any:
    assert body.API_KEY is not None
    response = error_response(_request(body.API_KEY, version, body), _ERROR, "no")
    assert response is not None
    return type(response).decode(response.encode(version), version)


def test_every_partition_of_a_request_is_named_again() -> None:
    request = ProduceRequest
    body = request(
        topic_data=[
            request.TopicProduceData(
                name=topic,
                partition_data=[request.PartitionProduceData(index=i) for i in indexes],
            )
            for topic, indexes in {"a": [0, 3], "b": [1]}.items()
        ]
    )

    response = _answer(body, 8)

    assert [
        (topic.name, partition.index, partition.base_offset, partition.error_message)
        for topic in response.responses
        for partition in topic.partition_responses
    ] == [("a", 0, -1, "no"), ("a", 3, -1, "no"), ("b", 1, -1, "no")]


def test_what_a_request_names_without_a_field_is_named_in_one() -> None:
    request = WriteTxnMarkersRequest
    topics = [request.WritableTxnMarkerTopic(name="t", partition_indexes=[2, 4])]
    markers = [request.WritableTxnMarker(producer_id=7, topics=topics)]
    groups = _answer(DescribeGroupsRequest(groups=["g", "h"]), 5).groups

    (marker,) = _answer(request(markers=markers), 1).markers

    assert [group.group_id for group in groups] == ["g", "h"]
    assert (marker.producer_id, marker.topics[0].name) == (7, "t")
    assert [partition.partition_index for partition in marker.topics[0].partitions] == [2, 4]


@pytest.mark.parametrize(
    ("version", "own_code", "partition_codes"),
    [(6, 0, [_ERROR.code]), (12, _ERROR.code, [_ERROR.code]), (13, _ERROR.code, [])],
)
def test_fetch_tells_old_clients_in_each_partition_too(
    version: int, own_code: int, partition_codes: list[int]
) -> None:
    topic = FetchRequest.FetchTopic(partitions=[FetchRequest.FetchPartition(partition=5)])

    response = _answer(FetchRequest(topics=[topic]), version)

    assert response.error_code == own_code
    partitions = [partition for topic in response.responses for partition in topic.partitions]
    assert [partition.error_code for partition in partitions] == partition_codes
    assert all(p.partition_index == 5 and p.high_watermark == -1 for p in partitions)


def test_failed_fetch_stays_in_its_session() -> None:
    assert _answer(FetchRequest(session_id=99), 12).session_id == 99


@pytest.mark.parametrize("version", [10, 11, 12])
def test_topic_asked_for_by_its_id_is_answered_by_it(version: int) -> None:
    topic_id = UUID(int=5)
    topics = [MetadataRequest.MetadataRequestTopic(topic_id=topic_id, name=None)]

    (topic,) = _answer(MetadataRequest(topics=topics), version).topics

    assert (topic.topic_id, topic.error_code) == (topic_id, _ERROR.code)
