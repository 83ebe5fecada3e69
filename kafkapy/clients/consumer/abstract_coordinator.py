"""Membership in a group: joining, heartbeats and leaving."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

from kafkapy.clients.client_errors import DisconnectError
from kafkapy.clients.client_request import ClientResponse, VersionedRequest
from kafkapy.clients.cluster_connection_states import FOREVER_MS
from kafkapy.clients.consumer.consumer_metrics import ConsumerMetrics
from kafkapy.clients.consumer.consumer_network_client import ConsumerNetworkClient
from kafkapy.clients.consumer.coordinator_finder import CoordinatorFinder
from kafkapy.clients.consumer.group_membership import NO_GENERATION, Generation, MemberState
from kafkapy.clients.consumer.group_rebalance_config import GroupRebalanceConfig
from kafkapy.clients.consumer.heartbeat import Heartbeat
from kafkapy.clients.consumer.heartbeat_thread import HeartbeatThread
from kafkapy.clients.consumer.request_future import RequestFuture
from kafkapy.clients.deadline import Deadline
from kafkapy.common.errors import (
    ApiError,
    CoordinatorNotAvailableError,
    Errors,
    GroupAuthorizationError,
    IllegalGenerationError,
    InconsistentGroupProtocolError,
    KafkaError,
    MemberIdRequiredError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kafkapy.common.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse
from kafkapy.common.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from kafkapy.common.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.metadata.broker import Node
from kafkapy.utils.backoff import ExponentialBackoff
from kafkapy.utils.time import Time

logger = logging.getLogger(__name__)

# A JoinGroup is answered when the whole group has joined: that may take the rebalance timeout.
_JOIN_GROUP_TIMEOUT_LAPSE_MS = 5_000
_FIRST_VERSION_WITH_MEMBERS = 3
_MAX_REASON_LENGTH = 255


class AbstractCoordinator(ABC):
    """The client's side of the group protocol, whatever the members of the group share.

    Called by the thread that polls, and by the heartbeat thread; fields are guarded by `lock`. A
    response handler may run in either thread. The network is never waited for under the lock but
    for what can be done at once.

    Ports: org.apache.kafka.clients.consumer.internals.AbstractCoordinator
    """

    def __init__(
        self,
        *,
        config: GroupRebalanceConfig,
        client: ConsumerNetworkClient,
        metrics: ConsumerMetrics,
        time: Time,
    ) -> None:
        # constant after construction
        self.config = config
        self.client = client
        self.metrics = metrics
        self.time = time
        self.lock = threading.Condition(threading.RLock())
        self.retry_backoff = ExponentialBackoff(
            config.retry_backoff_ms, 2, config.retry_backoff_max_ms
        )
        self.heartbeat = Heartbeat(
            time,
            session_timeout_ms=config.session_timeout_ms,
            heartbeat_interval_ms=config.heartbeat_interval_ms,
            max_poll_interval_ms=config.rebalance_timeout_ms,
            retry_backoff=self.retry_backoff,
        )
        self.finder = CoordinatorFinder(
            client=client,
            group_id=config.group_id,
            time=time,
            lock=self.lock,
            retry_backoff=self.retry_backoff,
            on_found=self.heartbeat.reset_session_timeout,
        )
        # guarded by self.lock
        self.state = MemberState.UNJOINED
        self._generation = NO_GENERATION
        self._rejoin_needed = True
        self._rejoin_reason = ""
        self._needs_join_prepare = True
        self._join_future: RequestFuture[bytes] | None = None
        self._rebalance_started_ms: int | None = None
        self._heartbeat_thread: HeartbeatThread | None = None

    # What a kind of group has of its own

    protocol_type: str

    @abstractmethod
    def metadata_protocols(self) -> Sequence[tuple[str, bytes]]:
        """The protocols this member supports, the preferred first, each with its metadata."""

    @abstractmethod
    def on_join_prepare(self, deadline: Deadline, generation: Generation) -> bool:
        """Before joining again; False when it needs another call to be done."""

    @abstractmethod
    def on_leader_elected(
        self,
        protocol: str,
        members: Sequence[JoinGroupResponse.JoinGroupResponseMember],
        *,
        skip_assignment: bool,
    ) -> Mapping[str, bytes]:
        """What each member is to do; called at the one that leads."""

    @abstractmethod
    def on_join_complete(self, generation: Generation, assignment: bytes) -> None:
        """This member has its assignment."""

    @abstractmethod
    def on_leave_prepare(self) -> None:
        """Before the group is left."""

    # The coordinator

    def ensure_coordinator_ready(self, deadline: Deadline, *, disable_wakeup: bool = False) -> bool:
        return self.finder.ensure_ready(deadline, disable_wakeup=disable_wakeup)

    def mark_coordinator_unknown(self, cause: object) -> None:
        self.finder.mark_unknown(cause)

    def send_to_coordinator(
        self, node: Node, request: VersionedRequest, *, request_timeout_ms: int | None = None
    ) -> RequestFuture[ClientResponse]:
        """A connection that is lost makes the coordinator unknown."""
        sent = self.client.send(node, request, request_timeout_ms=request_timeout_ms)

        def failed(error: KafkaError, future: RequestFuture[ClientResponse]) -> None:
            if isinstance(error, DisconnectError):
                self.finder.mark_unknown(error, disconnected=True)
            future.fail(error)

        return sent.compose(lambda response, future: future.complete(response), failed)

    # Membership as others see it

    @property
    def generation(self) -> Generation:
        with self.lock:
            return self._generation

    def generation_if_stable(self) -> Generation | None:
        with self.lock:
            return self._generation if self.state is MemberState.STABLE else None

    @property
    def is_rebalance_in_progress(self) -> bool:
        with self.lock:
            return self.state in (
                MemberState.PREPARING_REBALANCE,
                MemberState.COMPLETING_REBALANCE,
            )

    def is_generation_unchanged(self, sent: Generation) -> bool:
        with self.lock:
            return self._generation == sent

    def rejoin_needed_or_pending(self) -> bool:
        with self.lock:
            # A join under way has to be seen through, or its assignment would be lost.
            return self._rejoin_needed or self._join_future is not None

    def request_rejoin(self, reason: str) -> None:
        logger.info("Group %s: joining again: %s", self.config.group_id, reason)
        with self.lock:
            self._need_rejoin_locked(reason)

    def _need_rejoin_locked(self, reason: str) -> None:
        self._rejoin_reason = reason[:_MAX_REASON_LENGTH]
        self._rejoin_needed = True

    def request_rejoin_if_necessary(self, reason: str) -> None:
        with self.lock:
            if not self._rejoin_needed:
                self.request_rejoin(reason)

    def reset_state_on_error(self, error: Errors, *, keep_member_id: bool) -> None:
        """The group no longer knows this member, or not in this generation."""
        with self.lock:
            reason = f"{error.name} from the coordinator"
            member_id = self._generation.member_id if keep_member_id else ""
            self._reset_state(Generation(NO_GENERATION.generation_id, member_id, None))
            self.request_rejoin(reason)

    def _reset_state(self, generation: Generation) -> None:
        self.state = MemberState.UNJOINED
        self._generation = generation

    # Joining

    def ensure_active_group(self, deadline: Deadline) -> bool:
        """Be a member with an assignment; False when the deadline came first."""
        if not self.ensure_coordinator_ready(deadline):
            return False
        self._start_heartbeat_thread_if_needed()
        return self.join_group_if_needed(deadline)

    def join_group_if_needed(self, deadline: Deadline) -> bool:
        attempts = 0
        while self.rejoin_needed_or_pending():
            if not self.ensure_coordinator_ready(deadline):
                return False
            if self._needs_join_prepare:
                # Unset first: a listener that raises is not called again for this rebalance.
                self._needs_join_prepare = False
                if not self.on_join_prepare(deadline, self.generation):
                    self._needs_join_prepare = True
                    return False
            future = self._initiate_join_group()
            if not self.client.poll_future(future, deadline):
                return False
            if future.succeeded:
                with self.lock:
                    generation, state = self._generation, self.state
                if not generation.is_reset and state is MemberState.STABLE:
                    # Until it returns the join counts as pending: a wakeup in a listener must not
                    # lose the assignment.
                    self.on_join_complete(generation, future.value)
                    self._forget_join()
                    self._needs_join_prepare = True
                else:
                    self._forget_join()
                    self.request_rejoin("the generation was lost while the rebalance completed")
                continue
            self._forget_join()
            error = future.error
            if isinstance(error, MemberIdRequiredError):
                continue
            self.metrics.rebalance_failed()
            self.request_rejoin(f"the last attempt failed: {error}")
            if isinstance(
                error, UnknownMemberIdError | RebalanceInProgressError | IllegalGenerationError
            ):
                continue
            if not future.is_retriable:
                raise error
            backoff_ms = self.retry_backoff.backoff_ms(attempts)
            attempts += 1
            self.time.sleep(min(backoff_ms, deadline.remaining_ms))
            if deadline.is_expired:
                return False
        return True

    def _forget_join(self) -> None:
        with self.lock:
            self._join_future = None

    def _initiate_join_group(self) -> RequestFuture[bytes]:
        """The join under way, or a new one: a poll that timed out left it to the next."""
        with self.lock:
            if self._join_future is None:
                self.state = MemberState.PREPARING_REBALANCE
                if self._rebalance_started_ms is None:
                    self._rebalance_started_ms = self.time.hi_res_clock_ms()
                self._join_future = self._send_join_group()
            return self._join_future

    def _send_join_group(self) -> RequestFuture[bytes]:
        coordinator = self.finder.coordinator
        if coordinator is None:
            return RequestFuture.failure(CoordinatorNotAvailableError("The coordinator is unknown"))
        generation = self._generation
        request = JoinGroupRequest(
            group_id=self.config.group_id,
            session_timeout_ms=self.config.session_timeout_ms,
            rebalance_timeout_ms=self.config.rebalance_timeout_ms,
            member_id=generation.member_id,
            group_instance_id=self.config.group_instance_id,
            protocol_type=self.protocol_type,
            protocols=[
                JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in self.metadata_protocols()
            ],
            reason=self._rejoin_reason,
        )
        timeout_ms = max(
            self.client.request_timeout_ms,
            self.config.rebalance_timeout_ms + _JOIN_GROUP_TIMEOUT_LAPSE_MS,
        )
        versioned = VersionedRequest(request, min_version=self._min_join_version())
        return self.send_to_coordinator(
            coordinator, versioned, request_timeout_ms=timeout_ms
        ).compose(lambda response, future: self._handle_join(response, generation, future))

    def _min_join_version(self) -> int | None:
        return 5 if self.config.group_instance_id is not None else None

    def _handle_join(
        self, response: ClientResponse, sent: Generation, future: RequestFuture[bytes]
    ) -> None:
        message = response.message
        assert isinstance(message, JoinGroupResponse)
        error = Errors.for_code(message.error_code)
        if error is not Errors.NONE:
            self._handle_join_error(error, message, sent, future)
            return
        if message.protocol_type not in (None, self.protocol_type):
            future.fail(
                InconsistentGroupProtocolError(
                    f"Group {self.config.group_id} is of type {message.protocol_type},"
                    f" not {self.protocol_type}"
                )
            )
            return
        self.metrics.joined(response.request_latency_ms)
        with self.lock:
            if self.state is not MemberState.PREPARING_REBALANCE:
                # Left meanwhile: the assignment would be for a member that is gone.
                future.fail(RebalanceInProgressError("The group was left while joining it"))
                return
            self.state = MemberState.COMPLETING_REBALANCE
            self._generation = Generation(
                message.generation_id, message.member_id, message.protocol_name
            )
            if self._heartbeat_thread is not None:
                self._heartbeat_thread.enable()
        logger.info(
            "Group %s: member %s of generation %d",
            self.config.group_id,
            message.member_id,
            message.generation_id,
        )
        assignments: Mapping[str, bytes] = {}
        if message.leader == message.member_id:
            try:
                assignments = self.on_leader_elected(
                    message.protocol_name or "",
                    message.members,
                    skip_assignment=message.skip_assignment,
                )
            except KafkaError as failure:
                future.fail(failure)
                return
            except Exception as failure:
                # An assignor of the application's own: without an end the join would be pending
                # for ever.
                wrapped = KafkaError(f"Group {self.config.group_id}: no assignment: {failure!r}")
                wrapped.__cause__ = failure
                future.fail(wrapped)
                return
        self._send_sync_group(assignments).chain(future)

    def _handle_join_error(
        self,
        error: Errors,
        message: JoinGroupResponse,
        sent: Generation,
        future: RequestFuture[bytes],
    ) -> None:
        if error is Errors.MEMBER_ID_REQUIRED:
            # A member gets its id first, so that one that never comes back leaves nothing behind.
            with self.lock:
                self._generation = Generation(NO_GENERATION.generation_id, message.member_id, None)
                self._need_rejoin_locked("this member has been given its id")
        else:
            logger.info("Group %s: joining failed: %s", self.config.group_id, error.name)
        if error is Errors.UNKNOWN_MEMBER_ID and self.is_generation_unchanged(sent):
            self.reset_state_on_error(error, keep_member_id=False)
        elif error in (Errors.COORDINATOR_NOT_AVAILABLE, Errors.NOT_COORDINATOR):
            self.mark_coordinator_unknown(error.name)
        future.fail(self._exception(error))

    def _send_sync_group(self, assignments: Mapping[str, bytes]) -> RequestFuture[bytes]:
        coordinator = self.finder.coordinator
        if coordinator is None:
            return RequestFuture.failure(CoordinatorNotAvailableError("The coordinator is unknown"))
        generation = self.generation
        request = SyncGroupRequest(
            group_id=self.config.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=self.config.group_instance_id,
            protocol_type=self.protocol_type,
            protocol_name=generation.protocol_name,
            assignments=[
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=member, assignment=assignment)
                for member, assignment in assignments.items()
            ],
        )
        return self.send_to_coordinator(coordinator, VersionedRequest(request)).compose(
            lambda response, future: self._handle_sync(response, generation, future)
        )

    def _handle_sync(
        self, response: ClientResponse, sent: Generation, future: RequestFuture[bytes]
    ) -> None:
        message = response.message
        assert isinstance(message, SyncGroupResponse)
        error = Errors.for_code(message.error_code)
        if error is Errors.NONE:
            self.metrics.synced(response.request_latency_ms)
            with self.lock:
                is_current = (
                    not self._generation.is_reset and self.state is MemberState.COMPLETING_REBALANCE
                )
                expected = self._generation.protocol_name
                is_consistent = message.protocol_type in (None, self.protocol_type) and (
                    message.protocol_name in (None, expected)
                )
                if is_current and is_consistent:
                    self.state = MemberState.STABLE
                    self._rejoin_reason = ""
                    self._rejoin_needed = False
                    now_ms = self.time.hi_res_clock_ms()
                    self.metrics.rebalanced(now_ms - (self._rebalance_started_ms or now_ms))
                    self._rebalance_started_ms = None
            if not is_current:
                future.fail(IllegalGenerationError("The generation was lost before it was synced"))
            elif not is_consistent:
                future.fail(
                    InconsistentGroupProtocolError(
                        f"Group {self.config.group_id} chose {message.protocol_name},"
                        f" not {expected}"
                    )
                )
            else:
                future.complete(bytes(message.assignment))
            return
        logger.info("Group %s: syncing failed: %s", self.config.group_id, error.name)
        if error in (Errors.UNKNOWN_MEMBER_ID, Errors.ILLEGAL_GENERATION):
            if self.is_generation_unchanged(sent):
                self.reset_state_on_error(error, keep_member_id=error is Errors.ILLEGAL_GENERATION)
        elif error in (Errors.COORDINATOR_NOT_AVAILABLE, Errors.NOT_COORDINATOR):
            self.mark_coordinator_unknown(error.name)
        future.fail(self._exception(error))

    def _exception(self, error: Errors) -> ApiError:
        if error is Errors.GROUP_AUTHORIZATION_FAILED:
            return GroupAuthorizationError(f"Not authorized for group {self.config.group_id}")
        return error.exception(f"Group {self.config.group_id}: {error.message}")

    # Heartbeats

    def poll_heartbeat(self) -> None:
        """The application is alive; raises what ended the heartbeat thread."""
        with self.lock:
            thread = self._heartbeat_thread
            if thread is None:
                return
            if thread.failure is not None:
                self._heartbeat_thread = None
                if not self.state.has_not_joined_group:
                    # Still a member, which has to hear of rebalances; else the next join starts it.
                    self._start_heartbeat_thread_if_needed().enable()
                raise thread.failure
            if self.heartbeat.is_due:
                self.lock.notify_all()
            self.heartbeat.poll()

    def time_to_next_heartbeat_ms(self) -> int:
        with self.lock:
            if self.state.has_not_joined_group:
                return FOREVER_MS
            return self.heartbeat.time_to_next_heartbeat_ms

    def send_heartbeat(self) -> RequestFuture[None]:
        coordinator = self.finder.coordinator
        if coordinator is None:
            return RequestFuture.failure(CoordinatorNotAvailableError("The coordinator is unknown"))
        generation = self.generation
        request = HeartbeatRequest(
            group_id=self.config.group_id,
            generation_id=generation.generation_id,
            member_id=generation.member_id,
            group_instance_id=self.config.group_instance_id,
        )
        return self.send_to_coordinator(coordinator, VersionedRequest(request)).compose(
            lambda response, future: self._handle_heartbeat(response, generation, future)
        )

    def _handle_heartbeat(
        self, response: ClientResponse, sent: Generation, future: RequestFuture[None]
    ) -> None:
        message = response.message
        assert isinstance(message, HeartbeatResponse)
        self.metrics.heartbeat(response.request_latency_ms)
        error = Errors.for_code(message.error_code)
        if error is Errors.NONE:
            future.complete(None)
            return
        if error in (Errors.COORDINATOR_NOT_AVAILABLE, Errors.NOT_COORDINATOR):
            self.mark_coordinator_unknown(error.name)
        elif error is Errors.REBALANCE_IN_PROGRESS:
            with self.lock:
                if self.state is not MemberState.STABLE:
                    # Sent while this member was joining already: it knows.
                    future.complete(None)
                    return
                self.request_rejoin("the group is rebalancing")
        elif error in (
            Errors.ILLEGAL_GENERATION,
            Errors.UNKNOWN_MEMBER_ID,
            Errors.FENCED_INSTANCE_ID,
        ):
            if not self.is_generation_unchanged(sent):
                # An answer to a membership that has been replaced since.
                future.complete(None)
                return
            self.reset_state_on_error(error, keep_member_id=error is Errors.ILLEGAL_GENERATION)
        future.fail(self._exception(error))

    def _start_heartbeat_thread_if_needed(self) -> HeartbeatThread:
        with self.lock:
            thread = self._heartbeat_thread
            if thread is None:
                thread = self._heartbeat_thread = HeartbeatThread(self)
                thread.start()
            return thread

    # Leaving

    def maybe_leave_group(self, reason: str) -> None:
        """Tell the coordinator, once and without waiting; static members only go in silence."""
        with self.lock:
            coordinator = self.finder.coordinator
            if (
                self.config.group_instance_id is None
                and coordinator is not None
                and self.state is not MemberState.UNJOINED
                and self._generation.has_member_id
            ):
                logger.info("Leaving group %s: %s", self.config.group_id, reason)
                generation = self._generation

                def build(version: int) -> Message:
                    return self._leave_request(version, generation.member_id, reason)

                self.send_to_coordinator(
                    coordinator, VersionedRequest(build, api_key=ApiKeys.LEAVE_GROUP)
                ).add_listener(self._left, self._leaving_failed)
                self.client.poll_no_wakeup()
            self._reset_state(NO_GENERATION)
            self._need_rejoin_locked("this member has left the group")

    def _leave_request(self, version: int, member_id: str, reason: str) -> Message:
        if version < _FIRST_VERSION_WITH_MEMBERS:
            return LeaveGroupRequest(group_id=self.config.group_id, member_id=member_id)
        member = LeaveGroupRequest.MemberIdentity(
            member_id=member_id, reason=reason[:_MAX_REASON_LENGTH]
        )
        return LeaveGroupRequest(group_id=self.config.group_id, members=[member])

    def _left(self, response: ClientResponse) -> None:
        message = response.message
        assert isinstance(message, LeaveGroupResponse)
        codes = [message.error_code, *(member.error_code for member in message.members)]
        failed = [Errors.for_code(code).name for code in codes if code != Errors.NONE.code]
        if failed:
            logger.info("Leaving group %s failed: %s", self.config.group_id, failed)

    def _leaving_failed(self, error: KafkaError) -> None:
        logger.info("Leaving group %s failed: %s", self.config.group_id, error)

    def close(self, deadline: Deadline) -> None:
        """End the heartbeats, leave, and wait for what is on its way to the coordinator."""
        try:
            with self.lock:
                thread, self._heartbeat_thread = self._heartbeat_thread, None
            if thread is not None:
                thread.close()
            try:
                self.on_leave_prepare()
            finally:
                self.maybe_leave_group("the consumer is being closed")
        finally:
            coordinator = self.finder.coordinator
            if coordinator is not None and not self.client.await_pending_requests(
                coordinator, deadline
            ):
                logger.warning("Group %s: closing without all answers", self.config.group_id)
