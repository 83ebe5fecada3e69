"""A file system with little room, for faults that no seam can imitate."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


class SmallDisk:
    """A mounted tmpfs that can grow."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def resize(self, size_kib: int) -> None:
        _run("mount", "-o", f"remount,size={size_kib}k", str(self.path))


@contextmanager
def small_disk(path: Path, size_kib: int) -> Iterator[SmallDisk]:
    """Skips the test where nothing may be mounted."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    path.mkdir(parents=True)
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={size_kib}k", "kafkapy-test", str(path))
    except (OSError, subprocess.CalledProcessError) as e:
        pytest.skip(f"a small file system cannot be mounted here: {e}")
    try:
        yield SmallDisk(path)
    finally:
        _run("umount", "--lazy", str(path))


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)
