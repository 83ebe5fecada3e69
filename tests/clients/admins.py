"""Admin clients for tests, and what brokers need to have for some."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafkapy.clients.admin import AdminClient
from kafkapy.common.protocol.api_keys import ApiKeys
from tests.compat.brokers import Broker


@contextmanager
def admin_client(broker: Broker, **settings: object) -> Iterator[AdminClient]:
    defaults = {
        "bootstrap_servers": broker.bootstrap,
        "default_api_timeout_ms": 20_000,
        "retry_backoff_ms": 20,
        "retry_backoff_max_ms": 100,
    }
    with AdminClient(**{**defaults, **settings}) as admin:
        yield admin


def require_api(admin: AdminClient, api: ApiKeys) -> None:
    """Skips the test when the broker under test does not have the API."""
    for broker_id, versions in admin.api_versions().items():
        if versions.api_version(api) is None:
            pytest.skip(f"broker {broker_id} does not have {api.api_name}")
