"""Brokers that die while a producer writes: nothing is lost, doubled or reordered."""

import time
from pathlib import Path

import pytest

from kafkapy.clients.producer import KafkaProducer
from kafkapy.common.errors import RequestTimeoutError
from tests.clients.producers import producer_of, values_of
from tests.compat.brokers import start_broker


@pytest.mark.parametrize("ending", ["kill", "stop"])
def test_restarted_broker_gets_every_record_once_and_in_order(tmp_path: Path, ending: str) -> None:
    broker = start_broker(tmp_path)
    port = broker.address[1]
    count = 3000
    try:
        with producer_of(broker, batch_size=2000) as producer:
            futures = []
            for i in range(count):
                futures.append(producer.send("topic", b"%08d" % i))
                if i == count // 2:
                    getattr(broker, ending)()
                    broker = start_broker(tmp_path, port=port)
                if i % 100 == 0:
                    time.sleep(0.005)
            offsets = [future.get(60).offset for future in futures]

        assert offsets == sorted(offsets)
        assert values_of(broker, "topic") == [b"%08d" % i for i in range(count)]
    finally:
        broker.stop()


def test_broker_that_stays_away_fails_records_after_the_delivery_timeout(tmp_path: Path) -> None:
    broker = start_broker(tmp_path)
    producer: KafkaProducer = producer_of(
        broker, delivery_timeout_ms=600, request_timeout_ms=500, linger_ms=0
    )
    try:
        producer.send("topic", b"v").get(20)
        broker.stop()
        failed = [producer.send("topic", b"v") for _ in range(3)]

        for future in failed:
            with pytest.raises(RequestTimeoutError, match=r"topic-0 were not delivered"):
                future.get(20)
        assert producer.metrics()["producer-metrics"]["record-error-total"] == 3
    finally:
        producer.close(timeout=1)
