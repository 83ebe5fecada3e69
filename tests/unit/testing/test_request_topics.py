from typing import Any
from uuid import UUID

import pytest

from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.message_registry import request_class
from kafkapy.common.protocol.schema import Struct
from kafkapy.testing.request_topics import group_ids, topic_ids, topic_names

TOPIC_ID = UUID(int=7)


def filled(api_key: ApiKeys) -> Any:
    """A request in which every name is "x"."""
    return _fill(request_class(api_key)())


def _fill(struct: Any) -> Any:
    for field in struct.FIELDS:
        if field.struct_name is not None:
            nested = _fill(struct.struct_named(field.struct_name)())
            is_array = isinstance(getattr(struct, field.name), list | None)
            setattr(struct, field.name, [nested] if is_array else nested)
        elif field.name in ("topic", "name", "group_id", "resource_name"):
            setattr(struct, field.name, "x")
        elif field.name == "topic_names":
            struct.topic_names = ["x"]
        elif field.name == "topic_id":
            struct.topic_id = TOPIC_ID
        elif field.name == "resource_type":
            struct.resource_type = 2
    return struct


@pytest.mark.parametrize(
    "api_key",
    [
        ApiKeys.PRODUCE,
        ApiKeys.FETCH,
        ApiKeys.LIST_OFFSETS,
        ApiKeys.METADATA,
        ApiKeys.OFFSET_COMMIT,
        ApiKeys.OFFSET_FETCH,
        ApiKeys.OFFSET_FOR_LEADER_EPOCH,
        ApiKeys.CREATE_TOPICS,
        ApiKeys.DELETE_TOPICS,
        ApiKeys.CREATE_PARTITIONS,
        ApiKeys.DELETE_RECORDS,
        ApiKeys.ADD_PARTITIONS_TO_TXN,
        ApiKeys.TXN_OFFSET_COMMIT,
        ApiKeys.OFFSET_DELETE,
        ApiKeys.DESCRIBE_CONFIGS,
        ApiKeys.ALTER_CONFIGS,
        ApiKeys.INCREMENTAL_ALTER_CONFIGS,
        ApiKeys.DESCRIBE_PRODUCERS,
        ApiKeys.DESCRIBE_TOPIC_PARTITIONS,
    ],
    ids=lambda key: key.api_name,
)
def test_the_topic_of_every_request_is_found(api_key: ApiKeys) -> None:
    assert topic_names(filled(api_key)) == {"x"}


@pytest.mark.parametrize("api_key", [ApiKeys.FETCH, ApiKeys.METADATA, ApiKeys.DELETE_TOPICS])
def test_topic_ids_are_found(api_key: ApiKeys) -> None:
    assert topic_ids(filled(api_key)) == {TOPIC_ID}


@pytest.mark.parametrize(
    "api_key",
    [ApiKeys.JOIN_GROUP, ApiKeys.HEARTBEAT, ApiKeys.OFFSET_COMMIT, ApiKeys.OFFSET_FETCH],
)
def test_groups_are_found(api_key: ApiKeys) -> None:
    assert group_ids(filled(api_key)) == {"x"}


def test_what_is_not_given_is_not_found() -> None:
    empty: Struct = request_class(ApiKeys.FETCH)()

    assert (topic_names(empty), topic_ids(empty), group_ids(empty)) == (set(), set(), set())
