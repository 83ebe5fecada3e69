"""What the sink's options may be."""

import pickle

import pytest
from pyspark.sql.datasource import CaseInsensitiveDict

from kafkapy.pipeline.pipeline_errors import OptionError
from kafkapy.pipeline.sink.kafka_sink_options import SinkOptions

SERVERS = {"kafka.bootstrap.servers": "localhost:9092"}
TLS = {"kafka.security.protocol": "SSL", "kafka.ssl.truststore.type": "PEM"}


def test_only_the_brokers_are_required() -> None:
    options = SinkOptions.of(SERVERS)

    assert options.topic is None
    assert not options.exactly_once
    assert options.transactional_id_prefix == "kafkapy-sink"
    assert pickle.loads(pickle.dumps(options)) == options


def test_names_are_not_told_apart_by_case_and_others_options_are_left_alone() -> None:
    given = CaseInsensitiveDict(
        {
            **SERVERS,
            "TOPIC": " Events ",
            "exactlyONCE": "True",
            "transactionalIdPrefix": "Job-1",
            "checkpointLocation": "/tmp/c",
            "subscribe": "other",
            "kafka.Linger.ms": "7",
            "kafka.max.poll.records": "5",
        }
    )

    options = SinkOptions.of(given)

    assert (options.topic, options.exactly_once) == ("Events", True)
    assert options.transactional_id_prefix == "Job-1"
    with options.open_producer(transactional_id="t") as producer:
        assert producer.config.linger_ms == 7
        assert producer.config.transaction_timeout_ms == 900_000
        assert producer.config.required_acks == -1
        assert producer.config.enable_idempotence


def test_default_is_at_least_once_by_an_idempotent_producer() -> None:
    with SinkOptions.of(SERVERS).open_producer() as producer:
        assert producer.config.enable_idempotence
        assert producer.config.required_acks == -1


@pytest.mark.parametrize(
    ("given", "option", "reason"),
    [
        ({"kafka.bootstrap.servers": None}, "kafka.bootstrap.servers", "required"),
        ({"topic": ""}, "topic", "must not be empty"),
        ({"topic": " "}, "topic", "must not be empty"),
        ({"exactlyOnce": "yes"}, "exactlyOnce", "must be true or false, not 'yes'"),
        ({"exactlyOnse": "true"}, "exactlyonse", "is exactlyOnce meant"),
        ({"topics": "t"}, "topics", "is topic meant"),
        ({"transactionalIdPrefix": ""}, "transactionalIdPrefix", "must not be empty"),
        ({"kafka.transactional.id": "x"}, "kafka.transactional.id", "set exactlyOnce"),
        ({"kafka.key.serializer": "x"}, "kafka.key.serializer", "binary"),
        ({"kafka.value.serializer": "x"}, "kafka.value.serializer", "binary"),
        ({"kafka.linger.ms": "soon"}, "kafka.linger.ms", "soon"),
        ({"exactlyOnce": "true", "kafka.acks": "1"}, "kafka.*", "acks must be all"),
        ({"exactlyOnce": "true", "kafka.enable.idempotence": "false"}, "kafka.*", "idempotence"),
        (
            {**TLS, "kafka.ssl.truststore.location": "/nowhere/ca.pem"},
            "kafka.ssl.truststore.location",
            "^kafka.ssl.truststore.location: Invalid value /nowhere/ca.pem: No such file",
        ),
        (
            {**TLS, "kafka.ssl.keystore.location": "/nowhere/ssl.keystore.key"},
            "kafka.ssl.keystore.type",
            "^kafka.ssl.keystore.type: Invalid value JKS: .* set this to PEM$",
        ),
        (
            {"kafka.security.protocol": "SASL_SSL", "kafka.sasl.mechanism": "PLAIN"},
            "kafka.sasl.jaas.config",
            "^kafka.sasl.jaas.config: Invalid value: it is not set, and PLAIN needs",
        ),
    ],
)
def test_wrong_option_is_named(given: dict[str, str | None], option: str, reason: str) -> None:
    options = {name: value for name, value in {**SERVERS, **given}.items() if value is not None}

    with pytest.raises(OptionError, match=reason) as told:
        SinkOptions.of(options)

    assert told.value.option == option
