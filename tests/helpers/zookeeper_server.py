"""A real ZooKeeper for tests, where one is to be had."""

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

CLASSPATH_VARIABLE = "KAFKAPY_ZOOKEEPER_CLASSPATH"


def missing_zookeeper() -> str | None:
    """Why no ZooKeeper can be started here, or None when one can."""
    if not os.environ.get(CLASSPATH_VARIABLE):
        return f"{CLASSPATH_VARIABLE} does not name ZooKeeper's jars"
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
            "clientPortAddress=127.0.0.1\nadmin.enableServer=false\nmaxClientCnxns=0\n"
        )
        self._log = (directory / "zookeeper.log").open("wb")
        self._process = subprocess.Popen(
            [
                "java",
                "-Xmx128m",
                "-cp",
                os.environ[CLASSPATH_VARIABLE],
                "org.apache.zookeeper.server.ZooKeeperServerMain",
                str(config),
            ],
            stdout=self._log,
            stderr=subprocess.STDOUT,
        )
        self._await_listening()

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait()
        self._log.close()

    def _await_listening(self) -> None:
        deadline = time.monotonic() + 30
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    self.stop()
                    raise
                time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
