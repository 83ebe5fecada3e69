"""Spark finds the sources by itself: what its worker does to look for them, without a JVM."""

import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[4]
# As pyspark.sql.worker.lookup_data_sources does on the first query of a session.
_LOOK_UP = """
import importlib, pkgutil
from pyspark.sql.datasource import DataSource
for info in pkgutil.iter_modules():
    if info.name.startswith("pyspark_"):
        module = importlib.import_module(info.name)
        if hasattr(module, "DefaultSource") and issubclass(module.DefaultSource, DataSource):
            print(module.DefaultSource.name(), module.__file__)
"""
# Hides what the extra brings, as if it was not installed.
_WITHOUT_NUMPY = """
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *a: None if name == "numpy" else find_spec(name, *a)
"""


def _sources_found(code: str, directory: Path, **environment: str) -> dict[str, Path]:
    done = subprocess.run(
        [sys.executable, "-P", "-c", code],
        cwd=directory,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.split(" ", 1) for line in done.stdout.splitlines()]
    return {name: Path(file) for name, file in lines}


def test_an_installed_copy_is_found(tmp_path: Path) -> None:
    source, installed = tmp_path / "source", tmp_path / "installed"
    source.mkdir()
    runpy.run_path(str(ROOT / "bin" / "_bootstrap.py"))["copy_sources"](source)
    build = [sys.executable, "setup.py", "--quiet", "build_py", "--build-lib", str(installed)]
    subprocess.run(
        build, cwd=source, env={**os.environ, "KAFKAPY_COMPILE": "0"}, check=True, timeout=60
    )

    found = _sources_found(_LOOK_UP, tmp_path, PYTHONPATH=str(installed))

    assert found["kafkapy"] == installed / "pyspark_kafkapy.py"
    assert found["kafkapy-segments"] == installed / "pyspark_kafkapy_segments.py"
    assert (installed / "kafkapy/pipeline/spark/log4j2.properties").exists()


def test_without_the_extra_there_is_no_source_and_no_error(tmp_path: Path) -> None:
    assert _sources_found(_WITHOUT_NUMPY + _LOOK_UP, tmp_path, PYTHONPATH=str(ROOT)) == {}


@pytest.mark.skipif(
    not Path(sys.prefix).is_relative_to(ROOT), reason="not the checkout's own environment"
)
def test_the_checkout_is_found_from_everywhere(tmp_path: Path) -> None:
    found = _sources_found(_LOOK_UP, tmp_path)

    assert found["kafkapy"] == ROOT / "pyspark_kafkapy.py"
    assert found["kafkapy-segments"] == ROOT / "pyspark_kafkapy_segments.py"
