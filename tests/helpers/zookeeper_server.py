"""A real ZooKeeper for tests, from the jars that bin/fetch-test-tools fetched with Kafka's."""

import shutil
import socket
import subprocess
import time
from pathlib import Path

from tests.compat.tools import java_command, kafka_jars


def missing_zookeeper() -> str | None:
    """Why no ZooKeeper can be started here, or None when one can."""
    if not kafka_jars().is_dir():
        return "its jars are not there, run bin/fetch-test-tools"
    if shutil.which("java") is None:
        return "there is no java on the PATH"
    return None


class ZooKeeperServer:
    """One stand-alone server on a free port of this machine."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.port = _free_port()
        config = directory / "zoo.cfg"
        config.write_text(
            f"tickTime=200\ndataDir={directory / 'data'}\nclientPort={self.port}\n"
            "clientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\nmaxSessionTimeout=60000\n"
        )
        self._log = (directory / "zookeeper.log").open("wb")
        self._process = subprocess.Popen(
            java_command(
                "org.apache.zookeeper.server.ZooKeeperServerMain", str(config), heap="128m"
            ),
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._await_serving()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._log.close()

    def _await_serving(self) -> None:
        """It accepts connections, and leaves them without an answer, before it is ready."""
        deadline = time.monotonic() + 60
        while not self._is_serving():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"ZooKeeper does not serve, see {self._log.name}")
            time.sleep(0.05)

    def _is_serving(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1) as probe:
                probe.sendall(b"srvr")
                return b"Mode:" in probe.recv(4096)
        except OSError:
            return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
