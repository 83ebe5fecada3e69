import pickle
from dataclasses import dataclass

import pytest

from kafkapy.common.config_def import (
    ConfigType,
    InvalidValueError,
    Synonym,
    at_least,
    between,
    config,
    config_keys,
    each_of,
    one_of,
    parse,
)
from kafkapy.common.errors import InvalidConfigurationError


@dataclass(frozen=True, slots=True)
class Example:
    threads: int = config("num.threads", 3, at_least(1), doc="Threads.")
    enabled: bool = config("enabled", True, doc="On or off.")
    ratio: float = config("ratio", 0.5, between(0, 1), doc="A ratio.")
    names: tuple[str, ...] = config("names", ("a",), each_of("a", "b"), doc="Names.")
    rack: str | None = config("rack", None, doc="May be missing.")
    mode: str = config("mode", "fast", one_of("fast", "safe"), doc="A choice.")
    retention_ms: int = config(
        "retention.ms",
        1000,
        type=ConfigType.LONG,
        synonyms=("log.retention.ms", Synonym("log.retention.hours", 3_600_000)),
        doc="How long.",
    )


def test_what_is_not_named_keeps_its_default() -> None:
    assert parse(Example, {}) == Example()


def test_values_are_typed_by_the_annotation() -> None:
    parsed = parse(
        Example,
        {"num.threads": " 8 ", "enabled": "FALSE", "ratio": "0.25", "names": "b, a", "rack": "r1"},
    )

    assert parsed == Example(threads=8, enabled=False, ratio=0.25, names=("b", "a"), rack="r1")


def test_an_empty_text_is_none_only_where_the_setting_is_optional() -> None:
    assert parse(Example, {"rack": ""}).rack is None
    with pytest.raises(InvalidConfigurationError, match=r"num\.threads"):
        parse(Example, {"num.threads": ""})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("num.threads", "many"),
        ("num.threads", "0"),
        ("num.threads", str(1 << 31)),
        ("num.threads", "1_0"),
        ("enabled", "yes"),
        ("ratio", "1.5"),
        ("ratio", "half"),
        ("ratio", "0.2_5"),
        ("names", "a,c"),
        ("names", ""),
        ("mode", "slow"),
        ("retention.ms", str(1 << 63)),
        ("log.retention.hours", "soon"),
    ],
)
def test_a_bad_value_is_refused_with_the_name_of_the_property(name: str, text: str) -> None:
    with pytest.raises(InvalidConfigurationError) as refused:
        parse(Example, {name: text})

    assert name in str(refused.value)


def test_the_strongest_synonym_wins_and_units_are_converted() -> None:
    assert parse(Example, {"log.retention.hours": "2"}).retention_ms == 7_200_000
    both = {"log.retention.hours": "2", "log.retention.ms": "5"}
    assert parse(Example, both).retention_ms == 5


def test_a_negative_synonym_is_a_sentinel_and_not_scaled() -> None:
    assert parse(Example, {"log.retention.hours": "-1"}).retention_ms == -1


def test_names_and_synonyms_can_be_told_apart() -> None:
    properties = {"retention.ms": "1", "log.retention.ms": "2"}

    assert parse(Example, properties, use_synonyms=False).retention_ms == 1
    assert parse(Example, properties, use_name=False).retention_ms == 2


def test_keys_carry_the_declaration() -> None:
    keys = {key.name: key for key in config_keys(Example)}

    assert keys["rack"].optional
    assert keys["names"].type is ConfigType.LIST
    assert keys["retention.ms"].type is ConfigType.LONG
    assert keys["enabled"].format(True) == "true"
    assert keys["names"].format(("a", "b")) == "a,b"


def test_refused_value_is_the_same_in_another_process() -> None:
    error = InvalidValueError("num.io.threads", "0", "must be at least 1")

    copied = pickle.loads(pickle.dumps(error))

    assert str(error) == "Invalid value 0 for configuration num.io.threads: must be at least 1"
    assert (str(copied), copied.name, copied.reason) == (str(error), error.name, error.reason)
