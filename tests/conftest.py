"""Fixtures that every part of the suite uses, and how it is spread over workers."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.helpers.mock_scheduler import MockScheduler
from tests.helpers.mock_time import MockTime

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.scheduler import Scheduling


@pytest.fixture(scope="session", autouse=True)
def temporary_directory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Pytest removes what is left there: a JVM that a test kills leaves libraries and more."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("left")))
        yield


@pytest.fixture
def time() -> MockTime:
    return MockTime()


@pytest.fixture
def scheduler(time: MockTime) -> MockScheduler:
    return time.scheduler


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: "Producer") -> "Scheduling | None":
    from tests.helpers.distribution import FileScheduling

    return FileScheduling(config, log) if config.getvalue("dist") == "loadfile" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if hasattr(config, "workerinput"):
        from tests.helpers.distribution import rank_of

        items.sort(key=lambda item: rank_of(item.nodeid))
