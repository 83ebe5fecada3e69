"""One core for all threads of the broker, and a free one.

Only one thread runs Python at any time, so more cores give a broker little; but each time the
interpreter lock goes to a thread on another core, everything that thread touches has to follow it
from cache to cache. On one core a one-record produce costs about 0.6 of the processor time.

The core is not reserved: it is the one that other processes use least, looked at once a second.
"""

from __future__ import annotations

import contextlib
import logging
import os
import random
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

log = logging.getLogger(__name__)

_INTERVAL_S = 1.0
# Shares of one core. A broker that does less than the first is left alone, and one that works is
# moved when that frees it of the second.
_WORKING = 0.1
_CROWDED = 0.25
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_CORE = re.compile(r"cpu(\d+)((?: +\d+)+)")


class Cores(Protocol):
    """The cores that this process may use. For one thread."""

    def busy_s(self) -> Mapping[int, float]:
        """How long each core has worked so far, for whomever."""
        ...

    def own_s(self) -> float:
        """How much of that was for this process, on all cores together."""
        ...

    def keep_on(self, core: int) -> None:
        """Run all threads there, and those they start."""
        ...


class LinuxCores:
    """The cores as Linux tells of them. For one thread; its methods raise OSError."""

    def __init__(self) -> None:
        self._allowed = os.sched_getaffinity(0)  # constant after construction

    def busy_s(self) -> Mapping[int, float]:
        busy = {}
        with open("/proc/stat") as stat:
            for line in stat:
                # Of a core: user, nice, system, idle, waiting, irq, soft irq, stolen; then guests,
                # who are in user already. Older kernels have fewer columns.
                found = _CORE.match(line)
                if found is not None and int(found[1]) in self._allowed:
                    ticks = [int(count) for count in found[2].split()[:8]]
                    busy[int(found[1])] = (sum(ticks) - sum(ticks[3:5])) / _TICKS_PER_S
        return busy

    def own_s(self) -> float:
        return time.process_time()

    def keep_on(self, core: int) -> None:
        for thread in os.listdir("/proc/self/task"):
            with contextlib.suppress(ProcessLookupError):
                os.sched_setaffinity(int(thread), {core})


class _Reading(NamedTuple):
    at_s: float
    busy_s: Mapping[int, float]
    own_s: float


class CoreKeeper:
    """Keeps this process on one core inside its `with`; `look` belongs to its own thread."""

    def __init__(self, cores: Cores, *, clock: Callable[[], float] = time.monotonic) -> None:
        # constant after construction
        self._cores = cores
        self._clock = clock
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="core-keeper", daemon=True)
        # the keeper's own thread
        self._core: int | None = None
        self._last: _Reading | None = None

    def __enter__(self) -> CoreKeeper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._thread.join()

    def look(self) -> None:
        """Move, if what has happened since the last look speaks for it."""
        now = _Reading(self._clock(), self._cores.busy_s(), self._cores.own_s())
        last, self._last = self._last, now
        if last is None:
            return
        passed_s = now.at_s - last.at_s
        share = (now.own_s - last.own_s) / passed_s
        if share < _WORKING or len(now.busy_s) < 2:
            return
        # By others, and where this process is kept, by this one too.
        use = {
            core: (busy_s - last.busy_s.get(core, busy_s)) / passed_s
            for core, busy_s in now.busy_s.items()
        }
        freest = min(use, key=use.__getitem__)
        # A core can be taken out of use.
        core = freest if self._core not in use else self._core
        if use[core] - share - use[freest] > _CROWDED:
            core = freest
        self._core = core
        # Also without a move: a thread may have been started while the others were moved.
        self._cores.keep_on(core)

    def _run(self) -> None:
        try:
            self.look()
            # Brokers that crowd each other must not all move at the same moment.
            while not self._closed.wait(_INTERVAL_S * random.uniform(0.75, 1.25)):
                self.look()
        except OSError as e:
            log.info("The broker is not kept on one core: %s", e)
