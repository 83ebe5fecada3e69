"""Brokers that do not answer an admin client."""

import time

import pytest

from kafkapy.clients.admin import AdminClient
from kafkapy.common.errors import RequestTimeoutError
from kafkapy.testing import EmbeddedBroker


def test_call_that_is_not_answered_ends_with_its_timeout() -> None:
    with (
        EmbeddedBroker() as broker,
        AdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        admin.describe_cluster()
        broker.faults.on("DescribeGroups").delay(ms=6_000)
        started = time.monotonic()

        with pytest.raises(RequestTimeoutError, match="1000 ms"):
            admin.describe_consumer_groups(["group"], timeout_ms=1_000)

        assert time.monotonic() - started < 4
