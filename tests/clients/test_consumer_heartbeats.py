"""What a member of a group does about heartbeats that fail."""

import time

import pytest

from kafkapy.clients.consumer import KafkaConsumer
from kafkapy.clients.producer import KafkaProducer
from kafkapy.common.errors import SaslAuthenticationError
from kafkapy.testing import EmbeddedBroker
from tests.clients.helpers import read


def test_heartbeats_go_on_after_an_error_that_ended_them() -> None:
    with (
        EmbeddedBroker() as broker,
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer,
        KafkaConsumer(
            "topic",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="group",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            heartbeat_interval_ms=100,
        ) as consumer,
    ):
        producer.send("topic", b"v").get(10)
        read(consumer, 1)
        # Another broker refuses this client while the application works on its records.
        consumer._parts.metadata.fatal_error(SaslAuthenticationError("refused"))
        time.sleep(0.5)

        with pytest.raises(SaslAuthenticationError, match="refused"):
            consumer.poll(100)

        before = len(broker.requests("Heartbeat"))
        consumer.poll(1_000)
        assert len(broker.requests("Heartbeat")) > before
