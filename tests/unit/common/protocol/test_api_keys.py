import pytest

from kafkapy.common.protocol.api_keys import ApiKeys, ListenerType
from kafkapy.common.protocol.message_registry import request_class, response_class
from kafkapy.common.protocol.versions import NO_VERSIONS, Versions


def test_keys_are_those_of_kafka_without_gaps() -> None:
    assert [int(api) for api in ApiKeys] == list(range(88))
    assert ApiKeys.for_id(18) is ApiKeys.API_VERSIONS
    assert ApiKeys.for_id(88) is None
    assert ApiKeys.for_id(-1) is None


def test_names_and_versions_are_those_that_kafka_prints() -> None:
    api = ApiKeys.LIST_OFFSETS

    assert api.api_name == "ListOffsets"
    assert (api.min_version, api.max_version) == (0, 9)
    assert api.is_version_supported(9)
    assert not api.is_version_supported(10)
    assert not api.is_version_supported(-1)


@pytest.mark.parametrize("api", ApiKeys, ids=lambda api: api.api_name)
def test_messages_are_declared_for_every_advertised_version(api: ApiKeys) -> None:
    for cls in (request_class(api), response_class(api)):
        assert cls.API_KEY is api
        assert cls.VERSIONS.lowest <= api.min_version
        assert cls.VERSIONS.highest >= api.max_version
        if cls.FLEXIBLE_VERSIONS == NO_VERSIONS:
            assert api.first_flexible_version > cls.VERSIONS.highest
        else:
            assert cls.FLEXIBLE_VERSIONS.lowest == api.first_flexible_version


def test_registry_returns_one_class_per_direction() -> None:
    assert request_class(ApiKeys.FETCH).__name__ == "FetchRequest"
    assert response_class(ApiKeys.FETCH).__name__ == "FetchResponse"
    assert request_class(ApiKeys.FETCH) is request_class(ApiKeys.FETCH)


def test_controller_apis_are_not_offered_by_brokers() -> None:
    offered = ApiKeys.apis_for_listener(ListenerType.ZK_BROKER)

    assert ApiKeys.PRODUCE in offered
    assert ApiKeys.LEADER_AND_ISR in offered
    assert ApiKeys.VOTE not in offered
    assert not any(api.latest_version_unstable for api in offered)


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("3", [3], [2, 4]), ("0-5", [0, 5], [-1, 6]), ("4+", [4, 32767], [3]), ("none", [], [0])],
)
def test_version_ranges(text: str, inside: list[int], outside: list[int]) -> None:
    versions = Versions.parse(text)

    assert all(version in versions for version in inside)
    assert not any(version in versions for version in outside)
    assert str(versions) == text
