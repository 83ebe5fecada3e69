"""A broker over logs that another one wrote."""

import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.compat.brokers import Broker
from tests.compat.confluent_client import ConfluentAdmin


@contextmanager
def serving(
    start: Callable[[Path], Broker],
    work_dir: Path,
    log_dir: Path,
    topics: list[str],
    config: Mapping[str, str],
) -> Iterator[Broker]:
    """A broker that serves the partition directories of topics, each with one partition.

    The topics are made first, so that the broker's metadata knows them; then, while it is down,
    their directories get the other's files and keep their own topic id.
    """
    broker = start(work_dir)
    try:
        admin = ConfluentAdmin(broker.bootstrap)
        for topic in topics:
            admin.create_topic(topic, 1, dict(config))
    finally:
        broker.stop()
    assert broker.log_dir is not None
    for topic in topics:
        _replace_log(log_dir / f"{topic}-0", broker.log_dir / f"{topic}-0")
    broker = start(work_dir)
    try:
        yield broker
    finally:
        code = broker.stop()
    assert code == broker.clean_exit_code, broker.tail()


def _replace_log(source: Path, target: Path) -> None:
    for file in target.iterdir():
        if file.name != "partition.metadata":
            file.unlink()
    for file in source.iterdir():
        if file.name != "partition.metadata":
            shutil.copy2(file, target)
