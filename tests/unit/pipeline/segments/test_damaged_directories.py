"""Files damaged at random: what can be read is read, nothing else comes out."""

import random
import shutil
from pathlib import Path

import pytest

from tests.helpers.mock_time import MockTime
from tests.unit.pipeline.segments.reading import filled_log, rows
from tests.unit.storage.cleaning import TransactionalProducer, put
from tests.unit.storage.harness import StorageHarness


def damage(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    position = rng.randrange(len(content))
    match rng.randrange(4):
        case 0:
            content[position] ^= 1 << rng.randrange(8)
        case 1:
            content[position : position + 10] = rng.randbytes(rng.randrange(1, 20))
        case 2:
            del content[position:]
        case _:
            content[position:] = bytes(len(content) - position)
    path.write_bytes(content)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_damage_costs_rows_and_nothing_more(
    storage: StorageHarness, time: MockTime, tmp_path: Path, isolation: str
) -> None:
    log = filled_log(storage, time, batches=40)
    aborting = TransactionalProducer(log, time, 1)
    for number in range(4):
        aborting.put((f"t{number}", "x"))
        aborting.abort()
        put(log, time, (f"p{number}", "y"))
    log.close()
    written = {(row["key"], row["value"]) for row in rows(storage.log_dir)}
    rng = random.Random(7)

    for number in range(15):
        copy = tmp_path / f"copy-{number}"
        shutil.copytree(storage.log_dir, copy)
        files = [path for path in sorted(copy.glob("*/*")) if path.stat().st_size]
        for path in rng.sample(files, 2):
            damage(path, rng)

        found = rows(
            copy, failOnCorruption=False, isolationLevel=isolation, splitBytes=rng.choice([1, 600])
        )
        batches = rows(copy, view="batches")

        assert {(row["key"], row["value"]) for row in found} <= written
        assert batches != []
