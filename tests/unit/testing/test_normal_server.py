"""What is in a broker for tests is in no other."""

import subprocess
import sys
from pathlib import Path

from kafkapy.network.acceptor import open_server_socket
from kafkapy.network.request_channel import RequestChannel
from kafkapy.server.kafka_apis import KafkaApis
from kafkapy.server.kafka_config import KafkaConfig
from kafkapy.server.kafka_server import KafkaServer
from kafkapy.server.server_hooks import NO_HOOKS
from kafkapy.storage.file_system import OsFileSystem
from kafkapy.utils.time import SystemTime
from tests.helpers.broker import running_broker


def test_a_server_has_no_hooks_unless_its_constructor_is_given_some(tmp_path: Path) -> None:
    config = KafkaConfig({"log.dirs": str(tmp_path), "prometheus.port": "-1"})

    server = KafkaServer(config, SystemTime())

    assert server._hooks is NO_HOOKS
    assert NO_HOOKS.request_channel_class is RequestChannel
    assert NO_HOOKS.open_server_socket is open_server_socket
    assert NO_HOOKS.held_listeners == frozenset()
    assert type(server._file_system) is OsFileSystem


def test_nothing_stands_between_clients_and_a_running_server(tmp_path: Path) -> None:
    with running_broker(tmp_path) as broker:
        socket_server = broker.server._socket_server
        assert socket_server is not None
        channel = socket_server.data_plane_request_channel
        (pool,) = (
            close.__self__ for name, close in broker.server._closers if name == "request handlers"
        )

        assert type(channel) is RequestChannel
        assert type(pool._apis) is KafkaApis


def test_the_server_does_not_load_the_test_kit() -> None:
    program = (
        "import sys\n"
        "import kafkapy.tools.kafka_server_start, kafkapy.server.kafka_server\n"
        "print(*[name for name in sys.modules if name.startswith('kafkapy.testing')])"
    )

    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert loaded.stdout.split() == []
