"""Keeps a membership alive while the application works on its records."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from kafkapy.common.errors import (
    FencedInstanceIdError,
    KafkaError,
    RebalanceInProgressError,
)

if TYPE_CHECKING:
    from kafkapy.clients.consumer.abstract_coordinator import AbstractCoordinator

logger = logging.getLogger(__name__)


class HeartbeatThread:
    """Sends heartbeats while enabled, and leaves the group for an application that polls no more.

    Its own thread; all it touches is guarded by the coordinator's lock. A failure ends the thread
    and is raised by the next poll.

    Ports: org.apache.kafka.clients.consumer.internals.AbstractCoordinator.HeartbeatThread
    """

    def __init__(self, coordinator: AbstractCoordinator) -> None:
        self._coordinator = coordinator  # constant after construction
        self._lock = coordinator.lock
        # guarded by self._lock
        self._is_enabled = False
        self._is_closed = False
        self.failure: KafkaError | None = None
        self._thread = threading.Thread(
            target=self._run,
            name=f"kafka-coordinator-heartbeat-thread | {coordinator.config.group_id}",
            daemon=True,
        )

    def start(self) -> None:
        self._thread.start()

    def enable(self) -> None:
        """A membership has begun: its clocks start over."""
        with self._lock:
            self._is_enabled = True
            self._coordinator.heartbeat.reset_timeouts()
            self._lock.notify_all()

    def close(self) -> None:
        with self._lock:
            self._is_closed = True
            self._lock.notify_all()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        try:
            while self.run_once():
                pass
        except KafkaError as error:
            logger.warning("The heartbeat thread ends: %s", error)
            self._fail(error)
        except Exception as error:
            logger.exception("The heartbeat thread failed")
            failure = KafkaError(f"The heartbeat thread failed: {error}")
            failure.__cause__ = error
            self._fail(failure)

    def _fail(self, error: KafkaError) -> None:
        with self._lock:
            self.failure = error

    def run_once(self) -> bool:
        """One round; False once it is closed or has failed."""
        coordinator = self._coordinator
        heartbeat = coordinator.heartbeat
        with self._lock:
            if self._is_closed or self.failure is not None:
                return False
            if coordinator.state.has_not_joined_group:
                self._is_enabled = False
            if not self._is_enabled:
                self._lock.wait()
                return True
        # Outside the lock: a response handler of the other thread may need it to get done.
        coordinator.client.poll_no_wakeup()
        with self._lock:
            if self._is_closed or coordinator.state.has_not_joined_group:
                return True
            if coordinator.finder.is_unknown():
                # Look it up in turns with forgetting an unanswered look-up.
                if coordinator.finder.is_lookup_pending:
                    coordinator.finder.forget_lookup()
                else:
                    coordinator.finder.lookup()
                self._wait(coordinator.config.retry_backoff_ms)
            elif heartbeat.session_timeout_expired:
                coordinator.mark_coordinator_unknown(
                    "no heartbeat was answered for the whole session timeout"
                )
            elif heartbeat.poll_timeout_expired:
                logger.warning(
                    "Leaving group %s: poll() was not called for max.poll.interval.ms (%d ms)."
                    " Raise it, or lower max.poll.records",
                    coordinator.config.group_id,
                    heartbeat.max_poll_interval_ms,
                )
                coordinator.maybe_leave_group("poll was not called for max.poll.interval.ms")
            elif heartbeat.is_due:
                heartbeat.sent()
                coordinator.send_heartbeat().add_listener(self._beat, self._missed)
            elif heartbeat.is_in_flight:
                # Somebody has to read the answer, and the application may be busy.
                self._wait(coordinator.config.retry_backoff_ms)
            else:
                self._wait(heartbeat.time_to_next_event_ms)
        return True

    def _wait(self, timeout_ms: int) -> None:
        self._lock.wait(timeout_ms / 1000)

    def _beat(self, _: None) -> None:
        with self._lock:
            self._coordinator.heartbeat.received()

    def _missed(self, error: KafkaError) -> None:
        with self._lock:
            if isinstance(error, RebalanceInProgressError):
                # The coordinator knows this member, and waits for it to join.
                self._coordinator.heartbeat.received()
            elif isinstance(error, FencedInstanceIdError):
                self.failure = error
            else:
                self._coordinator.heartbeat.failed()
                self._lock.notify_all()
