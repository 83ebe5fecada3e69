"""Bytes that other implementations wrote are read and written by us in the same way."""

import pytest

from kafkapy.common.protocol.schema import Message
from tests.compat.golden.fixtures import Golden, clients, from_values, load
from tests.unit.common.protocol.message_samples import all_message_classes

CLASSES: dict[str, type[Message]] = {cls.__name__: cls for cls in all_message_classes()}


@pytest.mark.parametrize("client", clients())
def test_foreign_bytes_decode_to_the_values_that_were_encoded(client: str) -> None:
    for golden in load(client):
        decoded, position = _class_of(golden).decode_from(golden.encoded, 0, golden.version)

        assert decoded == from_values(_class_of(golden), golden.values), _title(golden)
        assert position == len(golden.encoded), _title(golden)


@pytest.mark.parametrize("client", clients())
def test_values_encode_to_the_foreign_bytes(client: str) -> None:
    for golden in load(client):
        message = from_values(_class_of(golden), golden.values)

        assert message.encode(golden.version) == golden.encoded, _title(golden)


def test_the_fixtures_cover_what_the_clients_speak() -> None:
    rows = {client: len(load(client)) for client in clients()}

    assert rows["kafka_python"] > 400
    assert rows["aiokafka"] > 180


def _class_of(golden: Golden) -> type[Message]:
    return CLASSES[golden.message]


def _title(golden: Golden) -> str:
    return f"{golden.client}: {golden.message} v{golden.version}"
