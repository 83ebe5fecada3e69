"""Work put off until no lock is held."""

import logging
from collections import deque
from collections.abc import Callable

logger = logging.getLogger(__name__)


class ActionQueue:
    """Actions left behind by appends, run by request handlers after each request. Thread-safe.

    Completing a delayed operation may take the locks of other partitions, so it is never done
    while one is held; any handler may run what another one has added.

    Ports: kafka.server.DelayedActionQueue
    """

    def __init__(self) -> None:
        self._actions: deque[Callable[[], None]] = deque()  # append and popleft are atomic

    def add(self, action: Callable[[], None]) -> None:
        self._actions.append(action)

    def try_complete_actions(self) -> None:
        """Run what was there when the call came; a failing action does not stop the others."""
        actions = self._actions
        for _ in range(len(actions)):
            try:
                action = actions.popleft()
            except IndexError:
                return  # another thread was faster
            try:
                action()
            except Exception:
                logger.exception("A delayed action failed")
