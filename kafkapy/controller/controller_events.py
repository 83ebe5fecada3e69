"""What can happen to a controller: the events its single thread works through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import ClassVar

from kafkapy.common.election_type import ElectionType as ElectionType
from kafkapy.common.errors import ControllerMovedError, Errors, NotControllerError
from kafkapy.common.protocol.messages.allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)
from kafkapy.common.protocol.messages.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from kafkapy.common.protocol.messages.leader_and_isr import LeaderAndIsrResponse
from kafkapy.common.protocol.messages.update_metadata import UpdateMetadataResponse
from kafkapy.common.types import TopicPartition
from kafkapy.controller.controller_state import ControllerState
from kafkapy.metadata.replica_assignment import ReplicaAssignment


class ElectionTrigger(Enum):
    """Who asked for a leader election.

    Ports: kafka.controller.ElectionTrigger
    """

    AUTO = "auto"
    ZK = "zk"
    ADMIN_CLIENT = "admin client"


@dataclass(frozen=True, slots=True)
class ApiResult:
    """How a request ended for one partition.

    Ports: org.apache.kafka.common.requests.ApiError
    """

    error: Errors = Errors.NONE
    message: str | None = None

    @staticmethod
    def of(error: Exception) -> ApiResult:
        return ApiResult(Errors.for_exception(error), str(error))


class ControllerEvent:
    """Something for the event thread to do. Immutable; equal by value.

    Ports: kafka.controller.ControllerEvent
    """

    __slots__ = ()
    state: ClassVar[ControllerState]

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def fail(self, error: Exception) -> None:
        """Tell whoever waits for the outcome, if anybody, that it is this error."""

    def preempt(self) -> None:
        """The event will never be processed here."""
        self.fail(NotControllerError("This broker is not the controller"))


class Startup(ControllerEvent):
    __slots__ = ()
    state = ControllerState.CONTROLLER_CHANGE


class ControllerChange(ControllerEvent):
    __slots__ = ()
    state = ControllerState.CONTROLLER_CHANGE


class Reelect(ControllerEvent):
    __slots__ = ()
    state = ControllerState.CONTROLLER_CHANGE


@dataclass(frozen=True, slots=True)
class Vacate(ControllerEvent):
    """Try again to leave the place of controller, taken with this version of its epoch."""

    epoch_zk_version: int
    state = ControllerState.CONTROLLER_CHANGE


class RegisterBrokerAndReelect(ControllerEvent):
    __slots__ = ()
    state = ControllerState.CONTROLLER_CHANGE


class Expire(ControllerEvent):
    __slots__ = ()
    state = ControllerState.CONTROLLER_CHANGE


class ShutdownEventThread(ControllerEvent):
    __slots__ = ()
    state = ControllerState.CONTROLLER_SHUTDOWN


class BrokerChange(ControllerEvent):
    __slots__ = ()
    state = ControllerState.BROKER_CHANGE


@dataclass(frozen=True, slots=True)
class BrokerModifications(ControllerEvent):
    broker_id: int
    state = ControllerState.BROKER_CHANGE


class TopicChange(ControllerEvent):
    __slots__ = ()
    state = ControllerState.TOPIC_CHANGE


@dataclass(frozen=True, slots=True)
class PartitionModifications(ControllerEvent):
    topic: str
    state = ControllerState.TOPIC_CHANGE


class TopicDeletion(ControllerEvent):
    __slots__ = ()
    state = ControllerState.TOPIC_DELETION


@dataclass(frozen=True, slots=True)
class TopicDeletionStopReplicaResponseReceived(ControllerEvent):
    replica_id: int
    request_error: Errors
    partition_errors: dict[TopicPartition, Errors]
    state = ControllerState.TOPIC_DELETION


class LogDirEventNotification(ControllerEvent):
    __slots__ = ()
    state = ControllerState.LOG_DIR_CHANGE


class IsrChangeNotification(ControllerEvent):
    __slots__ = ()
    state = ControllerState.ISR_CHANGE


AlterPartitionCallback = Callable[[AlterPartitionResponse], None]


@dataclass(frozen=True, slots=True)
class AlterPartitionReceived(ControllerEvent):
    request: AlterPartitionRequest
    version: int
    callback: AlterPartitionCallback
    state = ControllerState.ISR_CHANGE

    def fail(self, error: Exception) -> None:
        self.callback(AlterPartitionResponse(error_code=Errors.for_exception(error).code))


@dataclass(frozen=True, slots=True)
class LeaderAndIsrResponseReceived(ControllerEvent):
    response: LeaderAndIsrResponse
    broker_id: int
    state = ControllerState.LEADER_AND_ISR_RESPONSE_RECEIVED


@dataclass(frozen=True, slots=True)
class UpdateMetadataResponseReceived(ControllerEvent):
    response: UpdateMetadataResponse
    broker_id: int
    state = ControllerState.UPDATE_METADATA_RESPONSE_RECEIVED


# The partitions the broker still leads, or the error that stopped the hand-over.
ControlledShutdownCallback = Callable[["frozenset[TopicPartition] | Exception"], None]


@dataclass(frozen=True, slots=True)
class ControlledShutdown(ControllerEvent):
    broker_id: int
    broker_epoch: int
    callback: ControlledShutdownCallback
    state = ControllerState.CONTROLLED_SHUTDOWN

    def fail(self, error: Exception) -> None:
        self.callback(error)

    def preempt(self) -> None:
        self.fail(ControllerMovedError("The controller moved to another broker"))


# Per partition: the leader it was given, or why it was not.
ElectionResults = dict[TopicPartition, "ApiResult | int"]
ElectLeadersCallback = Callable[[ElectionResults], None]


@dataclass(frozen=True, slots=True)
class ReplicaLeaderElection(ControllerEvent):
    """Elect leaders for `partitions`, or for all when None (asked by the admin client), or for
    those named in /admin/preferred_replica_election (asked through the store)."""

    partitions: frozenset[TopicPartition] | None
    election_type: ElectionType
    trigger: ElectionTrigger
    callback: ElectLeadersCallback
    state = ControllerState.MANUAL_LEADER_BALANCE

    def fail(self, error: Exception) -> None:
        self.callback(dict.fromkeys(self.partitions or (), ApiResult.of(error)))


class AutoPreferredReplicaLeaderElection(ControllerEvent):
    __slots__ = ()
    state = ControllerState.AUTO_LEADER_BALANCE


class UncleanLeaderElectionEnable(ControllerEvent):
    __slots__ = ()
    state = ControllerState.UNCLEAN_LEADER_ELECTION_ENABLE


@dataclass(frozen=True, slots=True)
class TopicUncleanLeaderElectionEnable(ControllerEvent):
    topic: str
    state = ControllerState.TOPIC_UNCLEAN_LEADER_ELECTION_ENABLE


# Per partition: the replicas it shall have, or None to call a running reassignment off.
ReassignmentTargets = dict[TopicPartition, "tuple[int, ...] | None"]
AlterReassignmentsCallback = Callable[["dict[TopicPartition, ApiResult] | ApiResult"], None]


class ZkPartitionReassignment(ControllerEvent):
    __slots__ = ()
    state = ControllerState.ALTER_PARTITION_REASSIGNMENT


@dataclass(frozen=True, slots=True)
class ApiPartitionReassignment(ControllerEvent):
    reassignments: ReassignmentTargets
    callback: AlterReassignmentsCallback
    state = ControllerState.ALTER_PARTITION_REASSIGNMENT

    def fail(self, error: Exception) -> None:
        self.callback(ApiResult.of(error))


ListReassignmentsCallback = Callable[["dict[TopicPartition, ReplicaAssignment] | ApiResult"], None]


@dataclass(frozen=True, slots=True)
class ListPartitionReassignments(ControllerEvent):
    """Asks for `partitions`, or for all when None."""

    partitions: frozenset[TopicPartition] | None
    callback: ListReassignmentsCallback
    state = ControllerState.LIST_PARTITION_REASSIGNMENT

    def fail(self, error: Exception) -> None:
        self.callback(ApiResult.of(error))


AllocateProducerIdsCallback = Callable[[AllocateProducerIdsResponse], None]


@dataclass(frozen=True, slots=True)
class AllocateProducerIds(ControllerEvent):
    request: AllocateProducerIdsRequest
    callback: AllocateProducerIdsCallback
    state = ControllerState.IDLE

    def fail(self, error: Exception) -> None:
        self.callback(AllocateProducerIdsResponse(error_code=Errors.for_exception(error).code))
