"""Starting, stopping and starting again."""

import threading
from pathlib import Path

import pytest

from kafkapy.common.errors import KafkaError
from kafkapy.common.protocol.messages.metadata import MetadataRequest
from kafkapy.server.broker_state import BrokerState
from kafkapy.server.kafka_config import KafkaConfig
from kafkapy.server.kafka_server import KafkaServer
from kafkapy.utils.time import SystemTime
from tests.helpers import api
from tests.helpers.broker import Broker, ConnectionClosed
from tests.helpers.records import records
from tests.integration.conftest import MakeBroker

# Stopping


def test_a_produce_just_sent_is_answered_before_the_broker_stops(make_broker: MakeBroker) -> None:
    broker = make_broker()
    with broker.client() as client, broker.client() as other:
        topic = api.create_topic(client)
        for number in range(20):
            client.send(api.produce_request(topic, records(f"{number}")))
        first = client.receive().responses[0].partition_responses[0]
        stopper = threading.Thread(target=broker.stop)
        stopper.start()

        answered = 1
        try:
            while True:
                (answer,) = client.receive().responses
                assert answer.partition_responses[0].error_code == 0
                answered += 1
        except (ConnectionClosed, IndexError):
            pass
        stopper.join()
        assert first.error_code == 0
        assert other.is_closed()

    broker.start()
    with broker.client() as client:
        kept = api.fetched_values(api.fetch(client, topic))
    # What was answered is there; a request may have been carried out without being answered.
    assert kept[:answered] == [b"%d" % number for number in range(answered)]


def test_a_waiting_fetch_is_answered_at_once_when_the_broker_stops(
    make_broker: MakeBroker,
) -> None:
    broker = make_broker()
    with broker.client() as client:
        topic = api.create_topic(client)
        client.send(api.fetch_request(api.fetch_topic(topic, {0: 0}), max_wait_ms=60_000), 12)
        assert not client.has_response(0.1)

        broker.stop()

        (answer,) = client.receive().responses
        assert answer.partitions[0].error_code == 0


def test_a_stopped_broker_refuses_connections(make_broker: MakeBroker) -> None:
    broker = make_broker()
    address = broker.address()

    broker.stop()

    with pytest.raises(ConnectionRefusedError):
        broker.client()
    assert broker.server.state is BrokerState.NOT_RUNNING
    assert address[1] > 0


def test_stopping_twice_does_nothing(make_broker: MakeBroker) -> None:
    broker = make_broker()

    broker.stop()
    broker.stop()


def test_a_running_broker_says_so(broker: Broker) -> None:
    assert broker.server.state is BrokerState.RUNNING


# Starting again


def test_everything_is_there_after_a_restart(make_broker: MakeBroker) -> None:
    broker = make_broker()
    with broker.client() as client:
        topic = api.create_topic(client, partitions=3, configs={"retention.ms": "-1"})
        gone = api.create_topic(client)
        for partition in range(3):
            api.produced(client, topic, records("a", "b"), partition=partition)
        api.delete_topic(client, gone)
        before = client.request(MetadataRequest(topics=None))

    broker.restart()

    with broker.client() as client:
        after = client.request(MetadataRequest(topics=None))
        assert after.cluster_id == before.cluster_id
        assert [(t.name, t.topic_id) for t in after.topics] == [
            (t.name, t.topic_id) for t in before.topics
        ]
        for partition in range(3):
            data = api.fetch(client, topic, partition=partition)
            assert api.fetched_values(data) == [b"a", b"b"]
            assert data.high_watermark == 2
        assert api.produced(client, topic, records("c")) == 2


def test_topic_whose_indexes_hold_next_to_nothing_is_usable_after_a_restart(
    make_broker: MakeBroker,
) -> None:
    broker = make_broker()
    with broker.client() as client:
        topic = api.create_topic(client, configs={"segment.index.bytes": "4"})
        assert [api.produced(client, topic, records("a")) for _ in range(3)] == [0, 1, 2]

    broker.restart()

    with broker.client() as client:
        assert api.produced(client, topic, records("b")) == 3
        assert api.list_offset(client, topic, api.EARLIEST).offset == 0


def test_topics_are_usable_as_soon_as_the_broker_has_started(make_broker: MakeBroker) -> None:
    broker = make_broker()
    with broker.client() as client:
        topic = api.create_topic(client, partitions=30)

    for restart in range(3):
        broker.restart()
        with broker.client() as client:
            for partition in range(30):
                assert api.produced(client, topic, records("a"), partition=partition) == restart


def test_a_clean_stop_leaves_a_mark_that_the_next_start_takes_away(
    make_broker: MakeBroker,
) -> None:
    broker = make_broker()
    mark = broker.log_dir / ".kafka_cleanshutdown"
    assert not mark.exists()

    broker.stop()
    assert mark.exists()

    broker.start()
    assert not mark.exists()


def test_the_broker_id_is_kept_when_none_is_configured(make_broker: MakeBroker) -> None:
    broker = make_broker({"broker.id": "-1"})
    first = broker.server.broker_id

    broker.restart()

    assert first > 1000
    assert broker.server.broker_id == first


def test_the_directories_of_another_broker_are_refused(make_broker: MakeBroker) -> None:
    broker = make_broker()
    broker.stop()
    broker.properties["broker.id"] = "7"

    with pytest.raises(KafkaError, match=r"broker\.id"):
        broker.start()

    broker.properties["broker.id"] = "0"
    broker.start()


def test_a_locked_directory_is_refused_by_name(broker: Broker) -> None:
    second = KafkaServer(
        KafkaConfig({**broker.properties, "listeners": "PLAINTEXT://127.0.0.1:0"}), SystemTime()
    )

    with pytest.raises(KafkaError, match=str(broker.log_dir)):
        second.startup()
    second.shutdown()

    with broker.client() as client:
        assert client.request(MetadataRequest(topics=[])).brokers


def test_a_taken_port_is_refused_by_name(broker: Broker, tmp_path: Path) -> None:
    _, port = broker.address()
    second = Broker(tmp_path, {"listeners": f"PLAINTEXT://127.0.0.1:{port}"})

    with pytest.raises(KafkaError, match=str(port)):
        second.start()


def test_a_taken_metrics_port_is_refused_by_name(make_broker: MakeBroker, tmp_path: Path) -> None:
    address = make_broker({"prometheus.port": "0"}).server.metrics_address
    assert address is not None
    second = Broker(tmp_path / "second", {"prometheus.port": address.rpartition(":")[2]})

    with pytest.raises(KafkaError, match=r"prometheus\.port"):
        second.start()


def test_an_id_that_is_registered_already_is_refused_by_name(
    broker: Broker, tmp_path: Path
) -> None:
    properties = {**broker.properties, "log.dirs": str(tmp_path / "second")}
    second = KafkaServer(
        KafkaConfig(properties), SystemTime(), store=lambda *_: broker.new_session()
    )

    with pytest.raises(KafkaError, match=r"broker\.id=0"):
        second.startup()
    second.shutdown()

    with broker.client() as client:
        assert client.request(MetadataRequest(topics=[])).brokers


# Several brokers in one process


def test_two_brokers_in_one_process_do_not_know_of_each_other(make_broker: MakeBroker) -> None:
    one, two = make_broker({"prometheus.port": "0"}), make_broker({"prometheus.port": "0"})
    with one.client() as first, two.client() as second:
        topic = api.create_topic(first, partitions=2)
        api.create_topic(second, topic)
        api.produced(first, topic, records("of one"))
        api.produced(second, topic, records("of two", "twice"))

        assert api.fetched_values(api.fetch(first, topic)) == [b"of one"]
        assert api.fetched_values(api.fetch(second, topic)) == [b"of two", b"twice"]
        assert len(api.topic_metadata(second, topic).partitions) == 1
        assert one.server.cluster_id != two.server.cluster_id
        counter = f'kafka_server_brokertopicmetrics_messagesin_total{{topic="{topic}"}}'
        assert f"{counter} 1.0" in one.scrape()
        assert f"{counter} 2.0" in two.scrape()

        one.stop()
        assert api.produced(second, topic, records("goes on")) == 2
