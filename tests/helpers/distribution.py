"""Which tests stay together on one of bin/test's workers, and in what order they are handed out.

A file stays on one worker, so that what its tests share is started once. All tests that share a
Spark do too: starting one takes as long as many tests.
"""

from pathlib import PurePosixPath

from xdist.scheduler import LoadFileScheduling

SHARED_SPARK = "tests/pipeline"

# The long ones first; the many short ones fill the gaps at the end.
_DIRECTORIES = ("pipeline", "tools", "faults", "compat", "clients", "integration", "unit")


class FileScheduling(LoadFileScheduling):
    """As --dist loadfile, but the files of tests/pipeline are as one."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(nodeid)


def scope_of(nodeid: str) -> str:
    """Tests of the same scope run on the same worker."""
    file = nodeid.split("::", 1)[0]
    return SHARED_SPARK if str(PurePosixPath(file).parent) == SHARED_SPARK else file


def rank_of(nodeid: str) -> int:
    """Tests of a lower rank are handed out first."""
    directory = PurePosixPath(nodeid).parts[1]
    return _DIRECTORIES.index(directory) if directory in _DIRECTORIES else len(_DIRECTORIES)
