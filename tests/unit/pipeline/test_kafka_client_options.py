import pickle

import pytest

from kafkapy.clients.admin.admin_client_config import AdminClientConfig
from kafkapy.clients.consumer.consumer_config import ConsumerConfig
from kafkapy.clients.producer.producer_config import ProducerConfig
from kafkapy.pipeline.kafka_client_options import KafkaClientOptions
from kafkapy.pipeline.pipeline_errors import OptionError

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}


def test_only_options_with_the_prefix_are_settings_whatever_their_case() -> None:
    options = KafkaClientOptions.for_source(
        {"Kafka.Bootstrap.Servers": "a:1,b:2", "subscribe": "t", "kafkaConsumer.pollTimeoutMs": "1"}
    )

    assert options.properties == {"bootstrap.servers": "a:1,b:2"}
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize(
    "name",
    [
        "auto.offset.reset",
        "key.deserializer",
        "value.deserializer",
        "enable.auto.commit",
        "interceptor.classes",
    ],
)
def test_what_the_source_does_itself_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match=f"^kafka.{name}: "):
        KafkaClientOptions.for_source({**SERVERS, f"kafka.{name}": "x"})


@pytest.mark.parametrize("name", ["key.serializer", "value.serializer"])
def test_what_the_sink_does_itself_is_refused(name: str) -> None:
    with pytest.raises(OptionError, match=f"^kafka.{name}: "):
        KafkaClientOptions.for_sink({**SERVERS, f"kafka.{name}": "x"})


@pytest.mark.parametrize(
    ("options", "complaint"),
    [({}, "required"), ({"kafka.bootstrap.servers": " "}, ".*must not be empty")],
)
def test_without_servers_there_is_nobody_to_ask(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(OptionError, match=f"^kafka.bootstrap.servers: {complaint}"):
        KafkaClientOptions.for_source(options)


def test_an_unknown_setting_is_told_with_the_nearest_one() -> None:
    with pytest.raises(OptionError, match=r"kafka.isolation.leve:.*kafka.isolation.level meant"):
        KafkaClientOptions.for_source({**SERVERS, "kafka.isolation.leve": "read_committed"})


def test_a_wrong_value_is_told_with_its_option() -> None:
    with pytest.raises(OptionError, match=r"^kafka.request.timeout.ms: .*'soon'"):
        KafkaClientOptions.for_source({**SERVERS, "kafka.request.timeout.ms": "soon"})


def test_settings_that_contradict_each_other_are_told() -> None:
    options = KafkaClientOptions.for_source({**SERVERS, "kafka.session.timeout.ms": "10"})

    with pytest.raises(OptionError, match=r"session.timeout.ms \(10\)"):
        options.config(ConsumerConfig)


def test_secrets_are_not_seen_by_whoever_prints_the_options() -> None:
    given = {**SERVERS, "kafka.sasl.jaas.config": "hunter2", "kafka.ssl.keystore.key": "hunter2"}

    options = KafkaClientOptions.for_source(given)

    assert options.properties["ssl.keystore.key"] == "hunter2"
    assert "hunter2" not in f"{options} {options.config(ConsumerConfig)}"


def test_each_client_gets_the_settings_it_has() -> None:
    options = KafkaClientOptions.for_source(
        {**SERVERS, "kafka.isolation.level": "read_committed", "kafka.acks": "1"}
    )

    assert options.config(ConsumerConfig).is_read_committed
    assert "isolation.level" not in options.properties_for(AdminClientConfig)
    assert options.properties_for(ProducerConfig) == {
        "bootstrap.servers": "localhost:9092",
        "acks": "1",
    }


def test_a_default_gives_way_to_what_the_user_says() -> None:
    given = {**SERVERS, "kafka.max.partition.fetch.bytes": "7"}

    with_default = KafkaClientOptions.for_source(SERVERS)
    with_option = KafkaClientOptions.for_source(given)

    assert with_default.config(ConsumerConfig, max_partition_fetch_bytes=5) == ConsumerConfig(
        bootstrap_servers=("localhost:9092",), max_partition_fetch_bytes=5
    )
    config = with_option.config(ConsumerConfig, max_partition_fetch_bytes=5)
    assert config.max_partition_fetch_bytes == 7
