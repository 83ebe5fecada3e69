import pytest

from kafkapy.tools.config_entities import ConfigEntity, EntityType, entities_meant
from kafkapy.tools.kafka_configs import parser

_ALICE = ConfigEntity(EntityType.USER, "alice")
_DEFAULT_CLIENT = ConfigEntity(EntityType.CLIENT, None, is_default=True)


@pytest.mark.parametrize(
    ("line", "entities"),
    [
        ("--topic t", [ConfigEntity(EntityType.TOPIC, "t")]),
        ("--entity-type topics --entity-name t", [ConfigEntity(EntityType.TOPIC, "t")]),
        ("--entity-type topics", [ConfigEntity(EntityType.TOPIC, None)]),
        ("--broker-defaults", [ConfigEntity(EntityType.BROKER, None, is_default=True)]),
        ("--user alice --client-defaults", [_ALICE, _DEFAULT_CLIENT]),
        ("--user alice --client c", [ConfigEntity(EntityType.CLIENT, "c"), _ALICE]),
        (
            "--entity-type users --entity-type clients --entity-name alice --entity-default",
            [_ALICE, _DEFAULT_CLIENT],
        ),
        (
            "--entity-type clients --entity-default --entity-type users --entity-name alice",
            [_DEFAULT_CLIENT, _ALICE],
        ),
    ],
)
def test_entities_are_given_by_type_or_by_flag(line: str, entities: list[ConfigEntity]) -> None:
    command = parser()
    parsed = command.parse_args(["--bootstrap-server", "b", "--describe", *line.split()])

    assert entities_meant(command, parsed) == entities


@pytest.mark.parametrize(
    "line",
    [
        "",
        "--topic t --broker 0",
        "--topic t --entity-type topics",
        "--entity-type nonsense",
        "--entity-type users --entity-name a --entity-name b",
        "--entity-type topics --entity-default",
        "--broker x",
    ],
)
def test_entities_that_make_no_sense_are_refused(line: str) -> None:
    command = parser()
    parsed = command.parse_args(["--bootstrap-server", "b", "--describe", *line.split()])

    with pytest.raises(SystemExit):
        entities_meant(command, parsed)
