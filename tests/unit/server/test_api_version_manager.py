import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.server.api_version_manager import ApiVersionManager


@pytest.fixture
def manager() -> ApiVersionManager:
    return ApiVersionManager([ApiKeys.FETCH, ApiKeys.API_VERSIONS, ApiKeys.PRODUCE])


def test_only_enabled_apis_are_told_in_the_order_of_their_keys(manager: ApiVersionManager) -> None:
    response = manager.api_versions_response()

    assert [(k.api_key, k.min_version, k.max_version) for k in response.api_keys] == [
        (0, ApiKeys.PRODUCE.min_version, ApiKeys.PRODUCE.max_version),
        (1, ApiKeys.FETCH.min_version, ApiKeys.FETCH.max_version),
        (18, 0, 4),
    ]
    assert response.error_code == Errors.NONE.code


@pytest.mark.parametrize(
    ("api_key", "version", "enabled"),
    [
        (ApiKeys.PRODUCE, 0, True),
        (ApiKeys.PRODUCE, ApiKeys.PRODUCE.max_version, True),
        (ApiKeys.PRODUCE, ApiKeys.PRODUCE.max_version + 1, False),
        (ApiKeys.PRODUCE, -1, False),
        (ApiKeys.JOIN_GROUP, 0, False),
    ],
)
def test_an_api_is_enabled_in_its_versions(
    manager: ApiVersionManager, api_key: ApiKeys, version: int, enabled: bool
) -> None:
    assert manager.is_api_enabled(api_key, version) is enabled


def test_a_client_from_the_future_is_told_the_range_of_api_versions_alone(
    manager: ApiVersionManager,
) -> None:
    response = manager.unsupported_version_response()

    assert response.error_code == Errors.UNSUPPORTED_VERSION.code
    assert [(k.api_key, k.min_version, k.max_version) for k in response.api_keys] == [(18, 0, 4)]


def test_every_answer_fits_into_version_zero(manager: ApiVersionManager) -> None:
    for response in (manager.api_versions_response(), manager.unsupported_version_response()):
        assert type(response).decode(response.encode(0), 0).api_keys == response.api_keys
