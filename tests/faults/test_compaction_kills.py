"""SIGKILL of the broker while it compacts, again and again, over one log directory."""

import random
import re
import time
from pathlib import Path

from tests.helpers import api
from tests.helpers.broker import Client
from tests.helpers.records import record, records
from tests.helpers.server_process import ServerProcess
from tests.helpers.waiting import wait_until

_KILLS = 5
_KEYS = 1_000
_TOPIC = "compacted"
_RECORDS_PER_BATCH = 50
_EAGER = {
    "broker.id": "0",
    "log.cleaner.backoff.ms": "1",
    "log.cleaner.min.cleanable.ratio": "0.001",
}
_CONFIG = {"cleanup.policy": "compact", "segment.bytes": "60000"}


class _KeyedWriter:
    """Overwrites keys at random and knows the last acknowledged value of each."""

    def __init__(self, keys: int, rng: random.Random) -> None:
        self.last: dict[str, int] = {}
        self.sent = 0
        self._keys = keys
        self._rng = rng

    def write_all(self, client: Client) -> None:
        """Every key once, in batches."""
        keys = [f"key-{i}" for i in range(self._keys)]
        self._rng.shuffle(keys)
        for start in range(0, len(keys), _RECORDS_PER_BATCH):
            values = {}
            for key in keys[start : start + _RECORDS_PER_BATCH]:
                self.sent += 1
                values[key] = self.sent
            batch = records(*(record(str(value), key=key) for key, value in values.items()))
            api.produced(client, _TOPIC, batch)
            self.last.update(values)


def survive_kills(work_dir: Path, kills: int, keys: int) -> int:
    """Kills the broker so many times while it compacts; how many records were written."""
    rng = random.Random(11)
    writer = _KeyedWriter(keys, rng)
    for round_number in range(kills):
        server = ServerProcess(work_dir / "logs", work_dir / "output.txt", _EAGER)
        try:
            with server.client() as client:
                if round_number == 0:
                    api.create_topic(client, _TOPIC, configs=_CONFIG)
                else:
                    wait_until(lambda client=client: _is_served(client))
                writer.write_all(client)
            time.sleep(rng.uniform(0, 0.05))  # so that the kill falls into any part of the work
        finally:
            server.kill()
    server = ServerProcess(work_dir / "logs", work_dir / "output.txt", _EAGER)
    try:
        with server.client() as client:
            wait_until(lambda: _is_served(client))
            wait_until(lambda: _compacted_up_to(work_dir / "logs") > writer.sent - 2 * keys)
            found = _read_all(client)
        leftovers = list((work_dir / "logs" / f"{_TOPIC}-0").glob("*.swap"))
    finally:
        code = server.stop()

    assert code == 0, server.output()[-4000:]
    assert found == writer.last
    assert leftovers == []
    return writer.sent


def _is_served(client: Client) -> bool:
    return api.fetch(client, _TOPIC).error_code == 0


def _compacted_up_to(log_dir: Path) -> int:
    path = log_dir / "cleaner-offset-checkpoint"
    found = re.search(rf"^{_TOPIC} 0 (\d+)", path.read_text(), re.M) if path.exists() else None
    return int(found[1]) if found else 0


def _read_all(client: Client) -> dict[str, int]:
    """The last value of each key; offsets must ascend."""
    found: dict[str, int] = {}
    offset = 0
    while batches := api.fetched_batches(api.fetch(client, _TOPIC, offset)):
        for batch in batches:
            for read in batch.records():
                assert read.offset >= offset or batch is batches[0]
                found[(read.key or b"").decode()] = int(read.value or b"-1")
            offset = batch.next_offset
    return found


def test_the_last_value_of_each_key_survives_kills_while_compacting(tmp_path: Path) -> None:
    written = survive_kills(tmp_path, _KILLS, _KEYS)

    assert written == _KILLS * _KEYS
