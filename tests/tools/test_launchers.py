"""The commands in bin/: which Python they run with."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kafkapy import __version__
from tests.helpers.server_process import ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """What a fresh clone has to start with."""
    shutil.copytree(ROOT / "bin", tmp_path / "bin")
    shutil.copy(ROOT / "setup.cfg", tmp_path)
    return tmp_path


def _run(checkout: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k not in ("VIRTUAL_ENV", "PYTHON")}
    return subprocess.run(
        [checkout / "bin" / "kafka-server-start", "--version"],
        env={**kept, **environment},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=40,
    )


def test_environment_that_has_kafkapy_is_used_as_it_is(checkout: Path) -> None:
    ended = _run(checkout, VIRTUAL_ENV=sys.prefix)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"kafkapy {__version__}\n", "")
    assert not (checkout / ".venv").exists()


def test_checkout_that_is_set_up_is_used_without_a_word(checkout: Path) -> None:
    python = checkout / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    shutil.copy(checkout / "setup.cfg", checkout / ".venv" / ".installed-core")

    ended = _run(checkout)

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"kafkapy {__version__}\n", "")


def test_without_python_the_need_is_told_in_one_line(checkout: Path) -> None:
    ended = _run(checkout, PYTHON="no-such-python")

    assert ended.returncode == 1
    assert ended.stderr == "kafkapy needs Python 3.11 or newer: no-such-python not found\n"
