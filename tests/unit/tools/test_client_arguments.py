from pathlib import Path

import pytest

from kafkapy.clients.producer.producer_config import ProducerConfig
from kafkapy.tools.client_arguments import known_settings, load_property_file


def test_settings_without_effect_are_named_and_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    properties = {
        "linger.ms": "5",
        "auto.offset.reset": "latest",
        "key.serializer": "org.apache.kafka.common.serialization.StringSerializer",
    }

    assert known_settings(ProducerConfig, properties) == {"linger.ms": "5"}
    assert capsys.readouterr().err.splitlines() == [
        "The setting auto.offset.reset has no effect here",
        "The setting key.serializer has no effect here",
    ]


def test_a_property_file_that_cannot_be_read_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    missing = tmp_path / "client.properties"

    with pytest.raises(SystemExit) as end:
        load_property_file(str(missing))

    assert end.value.code == 1
    assert capsys.readouterr().err == f"Cannot read {missing}: No such file or directory\n"


def test_without_a_file_there_are_no_properties() -> None:
    assert load_property_file(None) == {}
