"""kafkajs against the broker: one node process for all tests of this file."""

from collections.abc import Iterator

import pytest

from tests.compat.brokers import Broker
from tests.compat.cases import EVERYTHING, Can
from tests.compat.contract import AdminContract, ClientContract
from tests.compat.json_driver import JsonDriver
from tests.compat.tools import node_command


@pytest.fixture(scope="module")
def client(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JsonDriver]:
    command, environment = node_command("client_driver.js")
    with (tmp_path_factory.mktemp("kafkajs") / "errors.txt").open("wb") as errors:
        driver = JsonDriver(
            command,
            broker.bootstrap,
            errors=errors,
            environment=environment,
            can=EVERYTHING - {Can.NULL_HEADER, Can.HEADER_ORDER},
        )
        yield driver
        assert driver.close() == 0


@pytest.fixture(scope="module")
def admin(client: JsonDriver) -> JsonDriver:
    return client


class TestKafkajs(ClientContract, AdminContract):
    pass
