"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs."""

import contextlib
import threading
from typing import Any

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.alter_configs import AlterConfigsRequest
from kafkapy.common.protocol.messages.describe_configs import DescribeConfigsRequest
from kafkapy.common.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
)
from tests.helpers import api
from tests.helpers.api import BROKER_RESOURCE, TOPIC_RESOURCE
from tests.helpers.broker import BROKER_ID, Broker, Client
from tests.helpers.records import records
from tests.helpers.waiting import wait_until
from tests.integration.conftest import MakeBroker

_TOPIC, _BROKER, _ALL_BROKERS, _STATIC, _DEFAULT = range(1, 6)
_BOOLEAN, _STRING, _INT, _SHORT, _LONG, _DOUBLE, _LIST = range(1, 8)
_GROUP_RESOURCE = 32
_THIS_BROKER = str(BROKER_ID)


def _replace(
    client: Client,
    resource_type: int,
    name: str,
    configs: dict[str, str | None],
    *,
    validate_only: bool = False,
) -> Any:
    """The answer of AlterConfigs for one resource."""
    response = client.request(
        AlterConfigsRequest(
            resources=[
                AlterConfigsRequest.AlterConfigsResource(
                    resource_type=resource_type,
                    resource_name=name,
                    configs=[
                        AlterConfigsRequest.AlterableConfig(name=key, value=value)
                        for key, value in configs.items()
                    ],
                )
            ],
            validate_only=validate_only,
        )
    )
    (result,) = response.responses
    return result


def _value(client: Client, topic: str, key: str) -> str:
    return api.config_entry(client, TOPIC_RESOURCE, topic, key).value


def _overrides(client: Client, topic: str) -> dict[str, str]:
    """The topic's own settings."""
    result = api.describe_configs(client, TOPIC_RESOURCE, topic)
    return {c.name: c.value for c in result.configs if c.config_source == _TOPIC}


@pytest.fixture
def own_broker(make_broker: MakeBroker) -> Broker:
    """A broker whose settings a test may alter."""
    return make_broker({"num.io.threads": "3", "log.retention.hours": "48"})


# DescribeConfigs


@pytest.mark.parametrize("keys", [None, []], ids=["null", "empty"])
def test_without_names_every_setting_is_described(
    client: Client, topic: str, keys: list[str] | None
) -> None:
    result = api.describe_configs(client, TOPIC_RESOURCE, topic, keys)

    names = {config.name for config in result.configs}
    assert {"cleanup.policy", "retention.ms", "message.timestamp.type"} <= names
    assert len(names) == len(result.configs) > 25


def test_only_settings_that_exist_are_described(client: Client, topic: str) -> None:
    result = api.describe_configs(client, TOPIC_RESOURCE, topic, ["retention.ms", "no.such.config"])

    assert (result.error_code, [config.name for config in result.configs]) == (0, ["retention.ms"])


@pytest.mark.parametrize("version", range(5))
def test_a_default_is_marked_as_such(client: Client, topic: str, version: int) -> None:
    result = api.describe_configs(
        client, TOPIC_RESOURCE, topic, ["retention.bytes"], version=version
    )

    (config,) = result.configs
    assert (config.value, config.read_only, config.is_sensitive) == ("-1", False, False)
    if version == 0:
        assert config.is_default
    else:
        assert config.config_source == _DEFAULT


@pytest.mark.parametrize("version", range(5))
def test_an_override_is_marked_as_such(client: Client, version: int) -> None:
    topic = api.create_topic(client, configs={"retention.ms": "99"})

    result = api.describe_configs(client, TOPIC_RESOURCE, topic, ["retention.ms"], version=version)

    (config,) = result.configs
    assert config.value == "99"
    if version == 0:
        assert not config.is_default
    else:
        assert config.config_source == _TOPIC


@pytest.mark.parametrize(
    ("key", "config_type"),
    [
        ("preallocate", _BOOLEAN),
        ("compression.type", _STRING),
        ("segment.bytes", _INT),
        ("retention.ms", _LONG),
        ("min.cleanable.dirty.ratio", _DOUBLE),
        ("cleanup.policy", _LIST),
    ],
)
def test_the_type_of_a_setting_is_told(
    client: Client, topic: str, key: str, config_type: int
) -> None:
    assert api.config_entry(client, TOPIC_RESOURCE, topic, key).config_type == config_type


def test_documentation_is_told_when_asked_for(client: Client, topic: str) -> None:
    with_it = api.describe_configs(client, TOPIC_RESOURCE, topic, include_documentation=True)
    without_it = api.describe_configs(client, TOPIC_RESOURCE, topic)

    assert all(config.documentation for config in with_it.configs)
    assert not any(config.documentation for config in without_it.configs)


def test_synonyms_are_told_when_asked_for(client: Client, topic: str) -> None:
    result = api.describe_configs(client, TOPIC_RESOURCE, topic, ["retention.ms"])

    assert result.configs[0].synonyms == []


def test_synonyms_name_every_place_a_value_could_come_from(own_broker: Broker) -> None:
    with own_broker.client() as client:
        topic = api.create_topic(client, configs={"retention.ms": "7"})
        api.alter_configs(client, BROKER_RESOURCE, "", ("log.retention.ms", api.SET, "8"))
        api.alter_configs(client, BROKER_RESOURCE, _THIS_BROKER, ("log.retention.ms", api.SET, "9"))
        expected = [
            ("retention.ms", "7", _TOPIC),
            ("log.retention.ms", "9", _BROKER),
            ("log.retention.ms", "8", _ALL_BROKERS),
            ("log.retention.hours", "48", _STATIC),
        ]

        def described() -> list[tuple[str, str, int]]:
            entry = api.config_entry(client, TOPIC_RESOURCE, topic, "retention.ms")
            return [(s.name, s.value, s.source) for s in entry.synonyms]

        wait_until(lambda: described()[:4] == expected, message=f"{described()}")
        assert described()[-1][2] == _DEFAULT


def test_a_static_setting_of_the_broker_counts_for_its_topics(own_broker: Broker) -> None:
    with own_broker.client() as client:
        topic = api.create_topic(client)

        entry = api.config_entry(client, TOPIC_RESOURCE, topic, "retention.ms")

    assert (entry.value, entry.config_source) == (str(48 * 3600 * 1000), _STATIC)


def test_broker_settings_tell_their_source_and_whether_they_can_change(
    own_broker: Broker,
) -> None:
    with own_broker.client() as client:
        result = api.describe_configs(client, BROKER_RESOURCE, _THIS_BROKER)

    configs = {config.name: config for config in result.configs}
    threads, listeners, rack = (
        configs[name] for name in ("num.io.threads", "listeners", "broker.rack")
    )
    assert (threads.value, threads.config_source, threads.read_only) == ("3", _STATIC, False)
    assert (listeners.config_source, listeners.read_only) == (_STATIC, True)
    assert (rack.value, rack.config_source) == (None, _DEFAULT)
    assert len(configs) == len(result.configs)


@pytest.mark.parametrize(
    ("resource_type", "name", "error"),
    [
        (TOPIC_RESOURCE, "no-such-topic", Errors.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC_RESOURCE, "", Errors.INVALID_TOPIC_EXCEPTION),
        (TOPIC_RESOURCE, "not legal", Errors.INVALID_TOPIC_EXCEPTION),
        (BROKER_RESOURCE, "17", Errors.INVALID_REQUEST),
        (BROKER_RESOURCE, "me", Errors.INVALID_REQUEST),
        (_GROUP_RESOURCE, "group", Errors.INVALID_REQUEST),
        (0, "", Errors.INVALID_REQUEST),
    ],
)
def test_a_resource_must_exist(
    client: Client, resource_type: int, name: str, error: Errors
) -> None:
    described = api.describe_configs(client, resource_type, name)
    altered = api.alter_configs(client, resource_type, name, ("retention.ms", api.SET, "1"))
    replaced = _replace(client, resource_type, name, {"retention.ms": "1"})

    assert (described.error_code, described.configs) == (error.code, [])
    assert (altered.error_code, replaced.error_code) == (error.code, error.code)
    assert described.error_message
    assert altered.error_message


def test_each_resource_is_described_or_fails_alone(client: Client, topic: str) -> None:
    response = client.request(
        DescribeConfigsRequest(
            resources=[
                DescribeConfigsRequest.DescribeConfigsResource(
                    resource_type=TOPIC_RESOURCE, resource_name=name, configuration_keys=None
                )
                for name in ("no-such-topic", topic)
            ]
        )
    )

    assert [(r.resource_name, bool(r.configs)) for r in response.results] == [
        ("no-such-topic", False),
        (topic, True),
    ]


# AlterConfigs


def test_alter_configs_replaces_all_overrides(client: Client) -> None:
    topic = api.create_topic(client, configs={"retention.ms": "1", "segment.ms": "2"})

    result = _replace(client, TOPIC_RESOURCE, topic, {"retention.ms": "5"})

    assert (result.error_code, result.error_message) == (0, None)
    assert _overrides(client, topic) == {"retention.ms": "5"}


def test_alter_configs_can_be_validated_only(client: Client, topic: str) -> None:
    assert (
        _replace(client, TOPIC_RESOURCE, topic, {"retention.ms": "5"}, validate_only=True)
    ).error_code == 0
    refused = _replace(client, TOPIC_RESOURCE, topic, {"retention.ms": "x"}, validate_only=True)

    assert refused.error_code == Errors.INVALID_CONFIG.code
    assert _overrides(client, topic) == {}


def test_alter_configs_refuses_a_setting_that_is_named_twice(client: Client, topic: str) -> None:
    named_twice = AlterConfigsRequest.AlterConfigsResource(
        resource_type=TOPIC_RESOURCE,
        resource_name=topic,
        configs=[
            AlterConfigsRequest.AlterableConfig(name="retention.ms", value=value)
            for value in ("1", "2")
        ],
    )

    response = client.request(AlterConfigsRequest(resources=[named_twice]))

    assert response.responses[0].error_code == Errors.INVALID_REQUEST.code
    assert _overrides(client, topic) == {}


def test_alter_configs_refuses_a_null(client: Client, topic: str) -> None:
    result = _replace(client, TOPIC_RESOURCE, topic, {"retention.ms": None})

    assert result.error_code == Errors.INVALID_REQUEST.code


# IncrementalAlterConfigs


def test_an_incremental_change_keeps_the_other_overrides(client: Client) -> None:
    topic = api.create_topic(client, configs={"retention.ms": "1", "segment.ms": "2"})

    api.alter_configs(client, TOPIC_RESOURCE, topic, ("retention.ms", api.SET, "5"))
    assert _overrides(client, topic) == {"retention.ms": "5", "segment.ms": "2"}

    api.alter_configs(client, TOPIC_RESOURCE, topic, ("segment.ms", api.DELETE, None))
    assert _overrides(client, topic) == {"retention.ms": "5"}


def test_incremental_changes_of_several_clients_at_once_are_all_kept(broker: Broker) -> None:
    changed = dict.fromkeys(("flush.ms", "retention.ms", "segment.ms"), "12345678")
    with contextlib.ExitStack() as stack:
        clients = [stack.enter_context(broker.client()) for _ in changed]
        for _ in range(10):
            topic = api.create_topic(clients[0])
            for (key, value), client in zip(changed.items(), clients, strict=True):
                client.send(
                    IncrementalAlterConfigsRequest(
                        resources=[
                            IncrementalAlterConfigsRequest.AlterConfigsResource(
                                resource_type=TOPIC_RESOURCE,
                                resource_name=topic,
                                configs=[
                                    IncrementalAlterConfigsRequest.AlterableConfig(
                                        name=key, config_operation=api.SET, value=value
                                    )
                                ],
                            )
                        ]
                    )
                )
            for client in clients:
                client.receive()

            described = api.describe_configs(clients[0], TOPIC_RESOURCE, topic, list(changed))
            assert {entry.name: entry.value for entry in described.configs} == changed


def test_lists_can_be_appended_to_and_subtracted_from(client: Client, topic: str) -> None:
    change = ("cleanup.policy", api.APPEND, "compact")
    assert api.alter_configs(client, TOPIC_RESOURCE, topic, change).error_code == 0
    assert _value(client, topic, "cleanup.policy") == "delete,compact"

    change = ("cleanup.policy", api.SUBTRACT, "delete")
    assert api.alter_configs(client, TOPIC_RESOURCE, topic, change).error_code == 0
    assert _value(client, topic, "cleanup.policy") == "compact"


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (("retention.ms", api.SET, "x"), Errors.INVALID_CONFIG),
        (("no.such.config", api.SET, "1"), Errors.INVALID_CONFIG),
        (("retention.ms", api.APPEND, "1"), Errors.INVALID_CONFIG),
        (("retention.ms", api.SET, None), Errors.INVALID_REQUEST),
        (("retention.ms", 9, "1"), Errors.INVALID_REQUEST),
        (("cleanup.policy", api.APPEND, "shred"), Errors.INVALID_CONFIG),
    ],
)
@pytest.mark.parametrize("validate_only", [True, False])
def test_a_change_must_be_legal(
    client: Client,
    topic: str,
    change: tuple[str, int, str | None],
    error: Errors,
    validate_only: bool,
) -> None:
    result = api.alter_configs(client, TOPIC_RESOURCE, topic, change, validate_only=validate_only)

    assert result.error_code == error.code
    assert result.error_message
    assert _overrides(client, topic) == {}


def test_an_incremental_change_can_be_validated_only(client: Client, topic: str) -> None:
    change = ("retention.ms", api.SET, "5")

    result = api.alter_configs(client, TOPIC_RESOURCE, topic, change, validate_only=True)

    assert result.error_code == 0
    assert _overrides(client, topic) == {}


def test_a_setting_altered_twice_is_refused(client: Client, topic: str) -> None:
    result = api.alter_configs(
        client,
        TOPIC_RESOURCE,
        topic,
        ("retention.ms", api.SET, "5"),
        ("retention.ms", api.DELETE, None),
    )

    assert result.error_code == Errors.INVALID_REQUEST.code


def test_a_resource_altered_twice_is_refused(client: Client, topic: str) -> None:
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=topic, configs=[]
    )

    response = client.request(IncrementalAlterConfigsRequest(resources=[resource, resource]))

    assert {r.error_code for r in response.responses} == {Errors.INVALID_REQUEST.code}


# Effect


def test_a_smaller_max_message_bytes_counts_at_once(client: Client, topic: str) -> None:
    api.produced(client, topic, records("a" * 1000))

    change = ("max.message.bytes", api.SET, "500")
    assert api.alter_configs(client, TOPIC_RESOURCE, topic, change).error_code == 0

    too_large = Errors.MESSAGE_TOO_LARGE.code
    wait_until(lambda: api.produce(client, topic, records("a" * 1000)).error_code == too_large, 5)
    assert api.produce(client, topic, records("a")).error_code == 0


def test_a_topic_that_becomes_compacted_refuses_records_without_a_key(
    client: Client, topic: str
) -> None:
    change = ("cleanup.policy", api.SET, "compact")
    assert api.alter_configs(client, TOPIC_RESOURCE, topic, change).error_code == 0

    refused = Errors.INVALID_RECORD.code
    wait_until(lambda: api.produce(client, topic, records("a")).error_code == refused, 5)


def test_a_default_for_topics_counts_where_no_override_is(own_broker: Broker) -> None:
    with own_broker.client() as client:
        plain = api.create_topic(client)
        special = api.create_topic(client, configs={"max.message.bytes": "5000"})

        change = ("message.max.bytes", api.SET, "300")
        assert api.alter_configs(client, BROKER_RESOURCE, "", change).error_code == 0

        too_large = Errors.MESSAGE_TOO_LARGE.code
        wait_until(
            lambda: api.produce(client, plain, records("a" * 1000)).error_code == too_large, 5
        )
        assert api.produce(client, special, records("a" * 1000)).error_code == 0


def test_request_handler_threads_come_and_go(own_broker: Broker) -> None:
    def handlers() -> int:
        return sum("request-handler" in thread.name for thread in threading.enumerate())

    with own_broker.client() as client:
        before = handlers()
        for count in (6, 3, 1, 2):
            change = ("num.io.threads", api.SET, str(count))
            result = api.alter_configs(client, BROKER_RESOURCE, _THIS_BROKER, change)
            assert result.error_code == 0
            wait_until(lambda count=count: handlers() == before + count - 3, 5)
        assert api.create_topic(client)


@pytest.mark.parametrize("name", [_THIS_BROKER, ""], ids=["this broker", "all brokers"])
def test_request_handler_threads_double_or_halve_at_most(own_broker: Broker, name: str) -> None:
    with own_broker.client() as client:

        def alter(resource: str, count: int) -> int:
            change = ("num.io.threads", api.SET, str(count))
            error: int = api.alter_configs(client, BROKER_RESOURCE, resource, change).error_code
            return error

        def current() -> str:
            entry = api.config_entry(client, BROKER_RESOURCE, _THIS_BROKER, "num.io.threads")
            value: str = entry.value
            return value

        assert alter(name, 7) == Errors.INVALID_REQUEST.code
        assert alter(name, 6) == 0
        wait_until(lambda: current() == "6", 5)
        assert alter(name, 2) == Errors.INVALID_REQUEST.code
        # What the broker's own value hides may be anything.
        assert alter(_THIS_BROKER, 6) == 0
        wait_until(lambda: alter("", 60) == 0, 5)
        assert alter("", 0) == Errors.INVALID_REQUEST.code


def test_records_older_than_a_new_retention_go(make_broker: MakeBroker) -> None:
    broker = make_broker(
        {"log.retention.check.interval.ms": "50", "log.initial.task.delay.ms": "0"}
    )
    with broker.client() as client:
        topic = api.create_topic(client, configs={"retention.ms": "-1"})
        api.produced(client, topic, records("from 2023"))

        change = ("retention.ms", api.SET, "1000")
        api.alter_configs(client, TOPIC_RESOURCE, topic, change)

        wait_until(lambda: api.list_offset(client, topic, api.EARLIEST).offset == 1)
        assert api.produced(client, topic, records("b")) == 1


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("listeners", "PLAINTEXT://:1"),
        ("no.such.config", "1"),
        ("num.io.threads", "0"),
        ("num.io.threads", "many"),
        ("compression.type", "rar"),
    ],
)
@pytest.mark.parametrize("name", [_THIS_BROKER, ""], ids=["this broker", "all brokers"])
def test_a_broker_setting_must_be_dynamic_and_legal(
    client: Client, name: str, key: str, value: str
) -> None:
    altered = api.alter_configs(client, BROKER_RESOURCE, name, (key, api.SET, value))
    replaced = _replace(client, BROKER_RESOURCE, name, {key: value})

    assert altered.error_code == replaced.error_code == Errors.INVALID_REQUEST.code


def test_altered_settings_are_kept_over_a_restart(own_broker: Broker) -> None:
    with own_broker.client() as client:
        topic = api.create_topic(client)
        api.alter_configs(client, TOPIC_RESOURCE, topic, ("max.message.bytes", api.SET, "400"))
        api.alter_configs(client, BROKER_RESOURCE, "", ("log.segment.bytes", api.SET, "2000000"))
        api.alter_configs(client, BROKER_RESOURCE, _THIS_BROKER, ("num.io.threads", api.SET, "2"))

    own_broker.restart()

    with own_broker.client() as client:
        threads = api.config_entry(client, BROKER_RESOURCE, _THIS_BROKER, "num.io.threads")
        segment = api.config_entry(client, TOPIC_RESOURCE, topic, "segment.bytes")
        default = api.describe_configs(client, BROKER_RESOURCE, "")

        assert (threads.value, threads.config_source) == ("2", _BROKER)
        assert (segment.value, segment.config_source) == ("2000000", _ALL_BROKERS)
        assert [(c.name, c.value) for c in default.configs] == [("log.segment.bytes", "2000000")]
        assert _overrides(client, topic) == {"max.message.bytes": "400"}
        refused = api.produce(client, topic, records("a" * 1000))
        assert refused.error_code == Errors.MESSAGE_TOO_LARGE.code


def test_a_broker_setting_can_be_taken_back(own_broker: Broker) -> None:
    with own_broker.client() as client:
        api.alter_configs(client, BROKER_RESOURCE, _THIS_BROKER, ("num.io.threads", api.SET, "2"))
        api.alter_configs(
            client, BROKER_RESOURCE, _THIS_BROKER, ("num.io.threads", api.DELETE, None)
        )

        def source() -> int:
            return api.config_entry(
                client, BROKER_RESOURCE, _THIS_BROKER, "num.io.threads"
            ).config_source

        wait_until(lambda: source() == _STATIC, 5)


def test_settings_go_with_their_topic(client: Client) -> None:
    topic = api.create_topic(client, configs={"retention.ms": "77"})

    api.recreate_topic(client, topic)

    assert _overrides(client, topic) == {}
