import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.process_tree import peak_python_mb

_GREEDY = "x = bytearray(40_000_000); del x; print('ready', flush=True); input()"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="there is no /proc")
def test_the_peak_of_a_python_below_is_seen_after_it_has_passed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _GREEDY], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"ready\n"

        peak = peak_python_mb(os.getpid())
        child.communicate(b"\n")

    assert 40 < peak < 200
    assert peak_python_mb(child.pid) == 0
