"""Whatever fails can be answered, in the version in which it was asked."""

from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.message_registry import request_class, response_class
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
