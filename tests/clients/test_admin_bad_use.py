"""AdminClient: bad use, unreachable brokers, and use by many threads."""

import socket
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from kafkapy.clients.admin import AdminClient, ElectionType, NewTopic, OffsetSpec
from kafkapy.clients.client_errors import IllegalStateError
from kafkapy.clients.consumer import OffsetAndMetadata
from kafkapy.common.errors import (
    InvalidConfigurationError,
    InvalidRequestError,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from kafkapy.common.types import TopicPartition
from tests.clients.admins import admin_client
from tests.compat.brokers import Broker


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({}, "bootstrap.servers"),
        ({"bootstrap_servers": "127.0.0.1"}, "127.0.0.1"),
        ({"bootstrap_servers": "127.0.0.1:1", "no_such": 1}, "no_such"),
        ({"bootstrap_servers": "127.0.0.1:1", "retries": "many"}, "retries"),
        ({"bootstrap_servers": "127.0.0.1:1", "default_api_timeout_ms": -1}, "default.api.timeout"),
        ({"bootstrap_servers": "127.0.0.1:1", "security_protocol": "TLS"}, "security.protocol"),
        ({"bootstrap_servers": "127.0.0.1:1", "security_protocol": "SASL_SSL"}, "sasl.mechanism"),
    ],
)
def test_wrong_setting_is_named(settings: dict[str, object], named: str) -> None:
    with pytest.raises(InvalidConfigurationError, match=named):
        AdminClient(**settings)


def test_unreachable_broker_is_named_after_the_configured_time(closed_port: int) -> None:
    started = time.monotonic()

    with (
        AdminClient(
            bootstrap_servers=f"127.0.0.1:{closed_port}", default_api_timeout_ms=200
        ) as admin,
        pytest.raises(RequestTimeoutError, match=rf"list_topics .*200 ms.*127.0.0.1:{closed_port}"),
    ):
        admin.list_topics()

    assert 0.2 <= time.monotonic() - started < 5


def test_negative_time_limit_is_refused(closed_port: int) -> None:
    with (
        AdminClient(bootstrap_servers=f"127.0.0.1:{closed_port}") as admin,
        pytest.raises(ValueError, match="-1"),
    ):
        admin.list_topics(timeout_ms=-1)


def test_one_name_in_place_of_a_list_is_refused(closed_port: int) -> None:
    with AdminClient(bootstrap_servers=f"127.0.0.1:{closed_port}") as admin:
        for call in (
            admin.delete_topics,
            admin.describe_topics,
            admin.delete_consumer_groups,
            admin.describe_consumer_groups,
            admin.describe_transactions,
            admin.fence_producers,
            admin.describe_user_scram_credentials,
        ):
            with pytest.raises(TypeError, match=r"list of .* 'orders'"):
                call("orders")


def test_negative_offset_of_a_group_is_refused(closed_port: int) -> None:
    with (
        AdminClient(bootstrap_servers=f"127.0.0.1:{closed_port}") as admin,
        pytest.raises(ValueError, match="orders-0 must not be negative: -5"),
    ):
        admin.alter_consumer_group_offsets(
            "group", {TopicPartition("orders", 0): OffsetAndMetadata(-5)}
        )


def test_closed_client_is_refused(broker: Broker) -> None:
    with admin_client(broker) as admin:
        admin.describe_cluster()
    admin.close()

    with pytest.raises(IllegalStateError, match="closed"):
        admin.list_topics()


def test_closing_waits_for_other_threads_or_ends_their_calls(closed_port: int) -> None:
    admin = AdminClient(bootstrap_servers=f"127.0.0.1:{closed_port}")
    with ThreadPoolExecutor() as pool:
        calls: list[Future[object]] = [pool.submit(admin.list_topics) for _ in range(3)]
        admin.close(timeout_ms=100)

        for call in calls:
            with pytest.raises(IllegalStateError, match="closed"):
                call.result(10)


def test_request_that_cannot_be_written_is_refused_and_harms_nothing(broker: Broker) -> None:
    with admin_client(broker) as admin:
        with pytest.raises(InvalidRequestError, match="create_topics"):
            admin.create_topics([NewTopic("admin-bad-use", num_partitions="three")])  # type: ignore[arg-type]

        assert "admin-bad-use" not in admin.list_topics()


def test_many_threads_share_one_client(broker: Broker, make_topic: Callable[..., str]) -> None:
    topics = [make_topic() for _ in range(3)]
    barrier = threading.Barrier(6)
    with admin_client(broker) as admin, ThreadPoolExecutor(6) as pool:

        def call(number: int) -> set[int]:
            partition = TopicPartition(topics[number % len(topics)], 0)
            barrier.wait(20)
            offsets = set()
            for _ in range(10):
                offsets.add(admin.list_offsets({partition: OffsetSpec.LATEST})[partition].offset)
                assert partition.topic in admin.list_topics()
            return offsets

        assert list(pool.map(call, range(6))) == [{0}] * 6


def test_slow_call_of_one_thread_does_not_hold_up_another(
    broker: Broker, make_topic: Callable[..., str]
) -> None:
    topic = make_topic()
    unknown = TopicPartition(topic, 99)
    with admin_client(broker) as admin, ThreadPoolExecutor(1) as pool:
        slow = pool.submit(admin.list_offsets, {unknown: OffsetSpec.LATEST}, timeout_ms=500)
        while not slow.done():
            assert topic in admin.list_topics()

        with pytest.raises(RequestTimeoutError, match=str(unknown)):
            slow.result()


def test_properties_may_be_given_with_dots(broker: Broker) -> None:
    properties = {"bootstrap.servers": broker.bootstrap, "request.timeout.ms": "7000"}

    with AdminClient(properties=properties, request_timeout_ms=8_000) as admin:
        assert admin.config.request_timeout_ms == 8_000
        assert admin.describe_cluster().controller is not None


def test_missing_api_does_not_end_the_client(broker: Broker) -> None:
    with admin_client(broker) as admin:
        try:
            admin.elect_leaders(ElectionType.PREFERRED)
        except UnsupportedVersionError as error:
            assert "ElectLeaders" in str(error)

        assert admin.describe_cluster().nodes
