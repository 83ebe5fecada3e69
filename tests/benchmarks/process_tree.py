"""Memory of the processes that a process has started."""

import re
from pathlib import Path

_PARENT = re.compile(r"^PPid:\s+(\d+)", re.MULTILINE)
_NAME = re.compile(r"^Name:\s+(\S+)", re.MULTILINE)
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB", re.MULTILINE)


def peak_python_mb(root: int) -> float:
    """The most that a Python below `root` has held, in units of 1,000,000 bytes; of those that run.

    0 where there is no /proc.
    """
    statuses = _statuses()
    peaks = [
        int(peak[1]) * 1024 / 1e6
        for pid, status in statuses.items()
        if _is_below(root, pid, statuses)
        and (name := _NAME.search(status))
        and name[1].startswith("python")
        and (peak := _PEAK.search(status))
    ]
    return max(peaks, default=0.0)


def _statuses() -> dict[int, str]:
    statuses = {}
    for file in Path("/proc").glob("[0-9]*/status"):
        try:
            statuses[int(file.parent.name)] = file.read_text()
        except (FileNotFoundError, ProcessLookupError):
            continue  # it has ended since
    return statuses


def _is_below(root: int, pid: int, statuses: dict[int, str]) -> bool:
    while parent := _PARENT.search(statuses.get(pid, "")):
        pid = int(parent[1])
        if pid == root:
            return True
    return False
