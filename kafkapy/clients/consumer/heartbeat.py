"""When to send heartbeats, and when their absence means something."""

from __future__ import annotations

from kafkapy.clients.deadline import Deadline
from kafkapy.utils.backoff import ExponentialBackoff
from kafkapy.utils.time import Time


class Heartbeat:
    """The clocks of a group membership. For use under the coordinator's lock.

    Ports: org.apache.kafka.clients.consumer.internals.Heartbeat
    """

    def __init__(
        self,
        time: Time,
        *,
        session_timeout_ms: int,
        heartbeat_interval_ms: int,
        max_poll_interval_ms: int,
        retry_backoff: ExponentialBackoff,
    ) -> None:
        self._session_timeout_ms = session_timeout_ms
        self._heartbeat_interval_ms = heartbeat_interval_ms
        self.max_poll_interval_ms = max_poll_interval_ms
        self._retry_backoff = retry_backoff
        self._session = Deadline(time, session_timeout_ms)
        self._heartbeat = Deadline(time, heartbeat_interval_ms)
        self._poll = Deadline(time, max_poll_interval_ms)
        self._attempts = 0
        self.is_in_flight = False

    def poll(self) -> None:
        """The application is alive."""
        self._poll.reset(self.max_poll_interval_ms)

    def sent(self) -> None:
        self.is_in_flight = True
        self._heartbeat.reset(self._heartbeat_interval_ms)

    def failed(self) -> None:
        """Sooner than after a good one."""
        self.is_in_flight = False
        self._heartbeat.reset(self._retry_backoff.backoff_ms(self._attempts))
        self._attempts += 1

    def received(self) -> None:
        self.is_in_flight = False
        self._attempts = 0
        self._session.reset(self._session_timeout_ms)

    def reset_session_timeout(self) -> None:
        self._session.reset(self._session_timeout_ms)

    def reset_timeouts(self) -> None:
        self._session.reset(self._session_timeout_ms)
        self._poll.reset(self.max_poll_interval_ms)
        self._heartbeat.reset(self._heartbeat_interval_ms)
        self.is_in_flight = False

    @property
    def is_due(self) -> bool:
        return self._heartbeat.is_expired

    @property
    def time_to_next_heartbeat_ms(self) -> int:
        return self._heartbeat.remaining_ms

    @property
    def session_timeout_expired(self) -> bool:
        return self._session.is_expired

    @property
    def poll_timeout_expired(self) -> bool:
        return self._poll.is_expired

    @property
    def time_to_next_event_ms(self) -> int:
        return min(
            self._heartbeat.remaining_ms, self._session.remaining_ms, self._poll.remaining_ms
        )
