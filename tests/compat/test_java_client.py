"""The Java client against the broker: one JVM for all tests of this file."""

from collections.abc import Iterator

import pytest

from tests.compat.brokers import Broker
from tests.compat.cases import BASE_TIMESTAMP_MS, Message, numbered
from tests.compat.contract import AdminContract, ClientContract, MakeTopic
from tests.compat.json_driver import JsonDriver
from tests.compat.tools import java_command


@pytest.fixture(scope="module")
def client(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JsonDriver]:
    command = java_command("ClientDriver")
    with (tmp_path_factory.mktemp("java") / "errors.txt").open("wb") as errors:
        driver = JsonDriver(command, broker.bootstrap, errors=errors)
        yield driver
        assert driver.close() == 0


@pytest.fixture(scope="module")
def admin(client: JsonDriver) -> JsonDriver:
    return client


class TestJavaClient(ClientContract, AdminContract):
    def test_altering_the_old_way_resets_what_is_not_named(
        self, client: JsonDriver, make_topic: MakeTopic
    ) -> None:
        topic = make_topic(config={"retention.ms": "86400000"})

        client.call("replaceTopicConfig", topic=topic, config={"segment.bytes": "1048576"})

        config = client.topic_config(topic)
        assert (config["segment.bytes"], config["retention.ms"]) == ("1048576", "604800000")

    def test_bad_config_value_is_refused(self, client: JsonDriver, make_topic: MakeTopic) -> None:
        topic = make_topic()

        with pytest.raises(Exception, match="InvalidConfigurationException"):
            client.set_topic_config(topic, "retention.ms", "soon")

    def test_greatest_timestamp_is_found(self, client: JsonDriver, make_topic: MakeTopic) -> None:
        topic = make_topic()
        stamps = [BASE_TIMESTAMP_MS + delta for delta in (5, 900, 20, 30)]
        client.produce(topic, [Message(b"x", timestamp_ms=stamp) for stamp in stamps])

        found = client.call("maxTimestamp", topic=topic, partition=0)

        assert found == [1, BASE_TIMESTAMP_MS + 900]

    def test_cluster_has_an_id_and_a_controller(self, broker: Broker, client: JsonDriver) -> None:
        described = client.call("describeCluster")

        assert described["nodes"] == [broker.bootstrap]
        assert len(described["clusterId"]) == 22
        assert described["controller"] >= 0

    def test_topic_description_has_id_leader_and_isr(
        self, client: JsonDriver, make_topic: MakeTopic
    ) -> None:
        topic = make_topic(partitions=2)

        described = client.call("describeTopic", topic=topic)

        broker_id = client.call("describeCluster")["controller"]
        assert described["topicId"] != "AAAAAAAAAAAAAAAAAAAAAA"
        assert described["internal"] is False
        assert described["partitions"] == [[0, broker_id, [broker_id]], [1, broker_id, [broker_id]]]

    def test_log_dirs_name_the_partition_and_its_size(
        self, client: JsonDriver, make_topic: MakeTopic
    ) -> None:
        topic = make_topic()
        client.produce(topic, numbered(100))
        broker_id = client.call("describeCluster")["controller"]

        dirs = client.call("describeLogDirs", broker=broker_id)

        (sizes,) = dirs.values()
        assert sizes[f"{topic}-0"] > 1000
