"""KAFKAPY_COMPILE=1: the same source, its hot modules compiled by mypyc, passes the same tests.

The build is kept in the tests' cache under a digest of what it is made from.
"""

import fcntl
import importlib
import inspect
import os
import pkgutil
import runpy
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping
from configparser import ConfigParser
from pathlib import Path

import pytest

import kafkapy
from kafkapy import __version__
from tests.compat.tools import cache_dir
from tests.helpers.server_process import running_server

ROOT = Path(__file__).resolve().parents[2]
BUILD_TIMEOUT_S = 400
TESTS_TIMEOUT_S = 200

pytestmark = [pytest.mark.slow, pytest.mark.timeout(BUILD_TIMEOUT_S + TESTS_TIMEOUT_S)]

# Of the modules themselves, and of a broker that is made of them.
_TESTS = (
    "unit/common/metrics/test_*.py",
    "unit/common/network/test_*.py",
    "unit/common/protocol/test_headers.py",
    "unit/common/record/test_*.py",
    "unit/common/test_compression.py",
    "unit/metadata/test_metadata_cache.py",
    "unit/network/test_request_*.py",
    "unit/purgatory/test_*.py",
    "unit/replication/test_*.py",
    "unit/server/test_request_handler.py",
    "unit/storage/test_*_index.py",
    "unit/storage/test_leader_epoch_file_cache.py",
    "unit/storage/test_log_segment*.py",
    "unit/storage/test_log_validator*.py",
    "unit/storage/test_producer_state_manager.py",
    "unit/storage/test_unified_log_*.py",
    "unit/utils/test_locks.py",
    "unit/utils/test_varint.py",
    "integration/test_produce.py",
    "integration/testing/test_observation.py",
)
_COMPILER = (os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc").split()[0]


def _compiled_modules() -> list[str]:
    declared = ConfigParser()
    declared.read(ROOT / "setup.cfg")
    return declared["kafkapy:compiled"]["modules"].split()


@pytest.fixture(scope="module")
def compiled() -> Path:
    """A directory with a compiled kafkapy."""
    if shutil.which(_COMPILER) is None:
        pytest.skip(f"there is no C compiler ({_COMPILER})")
    bootstrap = runpy.run_path(str(ROOT / "bin/_bootstrap.py"))
    home = cache_dir() / "compiled"
    home.mkdir(parents=True, exist_ok=True)
    done = home / bootstrap["digest_of_sources"]().decode()[:16]
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            for other in home.glob("[!.]*"):
                shutil.rmtree(other)
            building = home / "building"
            building.mkdir()
            bootstrap["copy_sources"](building)
            _build(building)
            building.rename(done)
    return done


def _build(directory: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"],
        cwd=directory,
        env={**os.environ, "KAFKAPY_COMPILE": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=BUILD_TIMEOUT_S,
    )
    assert ended.returncode == 0, ended.stdout[-5000:]


def _environment(compiled: Path) -> dict[str, str]:
    # The checkout comes second: it gives the tests, not the broker.
    return {**os.environ, "PYTHONPATH": os.pathsep.join((str(compiled), str(ROOT)))}


def _run(environment: Mapping[str, str], *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-P", *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TESTS_TIMEOUT_S,
    )
    assert ended.returncode == 0, ended.stdout[-5000:]
    return ended.stdout


def _run_tests(environment: Mapping[str, str], *arguments: str) -> None:
    options = ("-q", "-p", "no:cacheprovider", "-c", str(ROOT / "setup.cfg"))
    said = _run(environment, "-m", "pytest", *options, "--rootdir", str(ROOT), *arguments)
    assert " passed" in said, said


def test_every_declared_module_is_compiled(compiled: Path) -> None:
    modules = _compiled_modules()
    program = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]: print(importlib.import_module(name).__file__)"
    )

    files = _run(_environment(compiled), "-c", program, *modules).split()

    assert len(files) == len(modules) > 0
    assert all(file.startswith(str(compiled)) for file in files)
    assert not [file for file in files if file.endswith(".py")]


def test_what_derives_from_a_compiled_class_is_compiled() -> None:
    compiled = set(_compiled_modules())

    left_out = {
        f"{derived.__module__}.{derived.__name__} is a {base.__module__}.{base.__name__}"
        for info in pkgutil.walk_packages(kafkapy.__path__, "kafkapy.")
        for _, derived in inspect.getmembers(importlib.import_module(info.name), inspect.isclass)
        for base in derived.__bases__
        if base.__module__ in compiled and derived.__module__ not in compiled
        if not getattr(base, "_is_protocol", False)
    }

    assert left_out == set()


def test_compiled_modules_pass_the_tests_of_their_source(compiled: Path) -> None:
    tests = [path for pattern in _TESTS for path in (ROOT / "tests").glob(pattern)]

    _run_tests(_environment(compiled), *map(str, tests))


def test_compiled_broker_serves_a_foreign_client(compiled: Path, tmp_path: Path) -> None:
    environment = _environment(compiled)
    as_compiled = ("env", "PYTHONSAFEPATH=1", f"PYTHONPATH={environment['PYTHONPATH']}")
    with running_server(tmp_path / "logs", tmp_path / "out", wrapper=as_compiled) as server:
        assert server.output().startswith(f"kafkapy {__version__} (compiled), broker 0")
        environment["KAFKAPY_COMPAT_BOOTSTRAP"] = "{}:{}".format(*server.address)
        client = "tests/compat/test_kafka_python.py"
        _run_tests(environment, str(ROOT / client), "-k", "round_trip or idempotent")
        assert server.stop() == 0
