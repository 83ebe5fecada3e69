"""The machinery under an admin client's methods."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import TypeVar

from kafkapy.clients.admin.admin_api_driver import AdminApiDriver, RetryPolicy
from kafkapy.clients.admin.admin_api_handler import AdminApiHandler, SingleHandler
from kafkapy.clients.admin.admin_client_config import AdminClientConfig
from kafkapy.clients.admin.admin_metadata import AdminMetadata
from kafkapy.clients.admin.apis.cluster import BrokersHandler
from kafkapy.clients.admin.call_runner import CallRunner
from kafkapy.clients.admin.results import Results, results_of_parts
from kafkapy.clients.client_utils import create_network_client, parse_and_validate_addresses
from kafkapy.clients.deadline import Deadline
from kafkapy.clients.kafka_client import KafkaClient
from kafkapy.clients.metadata import Metadata
from kafkapy.common.errors import Errors
from kafkapy.common.protocol.schema import Message
from kafkapy.utils.backoff import ExponentialBackoff
from kafkapy.utils.time import Time

K = TypeVar("K")
V = TypeVar("V")
P = TypeVar("P")
R = TypeVar("R", bound=Message)

_EXPONENT_BASE = 2


class AdminCalls:
    """Runs handlers to their end over one set of connections. Thread-safe."""

    def __init__(
        self, config: AdminClientConfig, time: Time, client: KafkaClient, metadata: Metadata
    ) -> None:
        # constant after construction
        self._config = config
        self._time = time
        self._retry_policy = RetryPolicy(
            config.retries,
            ExponentialBackoff(
                config.retry_backoff_ms, _EXPONENT_BASE, config.retry_backoff_max_ms
            ),
        )
        self._runner = CallRunner(
            client, metadata, time, request_timeout_ms=config.request_timeout_ms
        )

    @staticmethod
    def connect(config: AdminClientConfig, time: Time) -> AdminCalls:
        """To the bootstrap servers, when the first call is made."""
        addresses = parse_and_validate_addresses(config.bootstrap_servers, config.client_dns_lookup)
        metadata = AdminMetadata(
            refresh_backoff_ms=config.retry_backoff_ms,
            refresh_backoff_max_ms=config.retry_backoff_max_ms,
            metadata_expire_ms=config.metadata_max_age_ms,
        )
        metadata.bootstrap(addresses)
        client = create_network_client(
            config,
            time,
            client_id=config.client_id or f"adminclient-{uuid.uuid4().hex[:8]}",
            max_in_flight_requests_per_connection=1,
            metadata=metadata,
        )
        return AdminCalls(config, time, client, metadata)

    def deadline(self, timeout_ms: int | None) -> Deadline:
        if timeout_ms is None:
            timeout_ms = self._config.default_api_timeout_ms
        elif timeout_ms < 0:
            raise ValueError(f"timeout_ms must not be negative: {timeout_ms}")
        return Deadline(self._time, timeout_ms)

    def run(
        self,
        handler: AdminApiHandler[K, V, R],
        keys: Iterable[K],
        timeout: int | Deadline | None,
        *,
        raise_errors: bool = True,
    ) -> Results[K, V]:
        """The time-out is in ms, by default that of the settings, or a deadline already running."""
        if isinstance(keys, str):
            # Its characters would be taken for names: of topics to be deleted, for instance.
            raise TypeError(f"expected a list of names, not the one name {keys!r}")
        deadline = timeout if isinstance(timeout, Deadline) else self.deadline(timeout)
        driver = AdminApiDriver(
            handler, keys, self._runner, deadline=deadline, retry_policy=self._retry_policy
        )
        results = driver.run()
        if raise_errors:
            results.raise_first_error()
        return results

    def run_one(self, handler: SingleHandler[V, R], timeout: int | Deadline | None) -> V:
        return self.run(handler, [None], timeout)[None]

    def run_parts(
        self,
        handler: AdminApiHandler[K, dict[P, Errors], R],
        key: K,
        parts: Iterable[P],
        *,
        timeout: int | Deadline | None,
        raise_errors: bool,
    ) -> Results[P, None]:
        """A call about one key whose parts are what the caller wants to hear about."""
        parts = tuple(parts)
        whole = self.run(handler, [key] if parts else [], timeout, raise_errors=False)
        results = results_of_parts(whole, parts)
        if raise_errors:
            results.raise_first_error()
        return results

    def broker_ids(self, timeout: int | Deadline | None) -> list[int]:
        return self.run_one(BrokersHandler(), timeout)

    def close(self, timeout_ms: int | None) -> None:
        self._runner.close(timeout_ms)
