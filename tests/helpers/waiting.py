"""Waiting for what other threads do. Only for tests with real threads."""

import time
from collections.abc import Callable


def wait_until(
    predicate: Callable[[], object],
    timeout: float = 15.0,
    *,
    message: str = "",
    pause: float = 0.005,
) -> None:
    """Return once `predicate()` is true; fail the test when it is not within `timeout` seconds."""
    deadline = time.monotonic() + timeout
    while not predicate():
        if time.monotonic() > deadline:
            raise AssertionError(message or f"condition not met within {timeout} s")
        time.sleep(pause)
