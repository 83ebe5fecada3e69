"""Every error of the Kafka protocol: its code, its exception and its text, in one table.

Code raises the exceptions; `Errors.for_exception` turns them into codes at two boundaries only:
per partition in the results of ReplicaManager and the coordinators, per request in KafkaApis.
"""

from __future__ import annotations

from enum import Enum


class KafkaError(Exception):
    """Base of everything kafkapy raises on purpose.

    Ports: org.apache.kafka.common.KafkaException
    """


class ApiError(KafkaError):
    """An error that has a code on the wire.

    Ports: org.apache.kafka.common.errors.ApiException
    """


class RetriableError(ApiError):
    """Trying the same request again may succeed.

    Ports: org.apache.kafka.common.errors.RetriableException
    """


class InvalidMetadataError(RetriableError):
    """The client's picture of the cluster is out of date: refresh it, then try again.

    Ports: org.apache.kafka.common.errors.InvalidMetadataException
    """


class UnknownServerError(ApiError):
    pass


class OffsetOutOfRangeError(ApiError):
    pass


class CorruptRecordError(RetriableError):
    pass


class UnknownTopicOrPartitionError(InvalidMetadataError):
    pass


class InvalidFetchSizeError(ApiError):
    pass


class LeaderNotAvailableError(InvalidMetadataError):
    pass


class NotLeaderOrFollowerError(InvalidMetadataError):
    pass


class RequestTimeoutError(RetriableError):
    pass


class BrokerNotAvailableError(ApiError):
    pass


class ReplicaNotAvailableError(InvalidMetadataError):
    pass


class RecordTooLargeError(ApiError):
    pass


class ControllerMovedError(ApiError):
    pass


class OffsetMetadataTooLargeError(ApiError):
    pass


class NetworkError(InvalidMetadataError):
    pass


class CoordinatorLoadInProgressError(RetriableError):
    pass


class CoordinatorNotAvailableError(RetriableError):
    pass


class NotCoordinatorError(RetriableError):
    pass


class InvalidTopicError(ApiError):
    pass


class RecordBatchTooLargeError(ApiError):
    pass


class NotEnoughReplicasError(RetriableError):
    pass


class NotEnoughReplicasAfterAppendError(RetriableError):
    pass


class InvalidRequiredAcksError(ApiError):
    pass


class IllegalGenerationError(ApiError):
    pass


class InconsistentGroupProtocolError(ApiError):
    pass


class InvalidGroupIdError(ApiError):
    pass


class UnknownMemberIdError(ApiError):
    pass


class InvalidSessionTimeoutError(ApiError):
    pass


class RebalanceInProgressError(ApiError):
    pass


class InvalidCommitOffsetSizeError(ApiError):
    pass


class TopicAuthorizationError(ApiError):
    pass


class GroupAuthorizationError(ApiError):
    pass


class ClusterAuthorizationError(ApiError):
    pass


class InvalidTimestampError(ApiError):
    pass


class UnsupportedSaslMechanismError(ApiError):
    pass


class IllegalSaslStateError(ApiError):
    pass


class UnsupportedVersionError(ApiError):
    pass


class TopicExistsError(ApiError):
    pass


class InvalidPartitionsError(ApiError):
    pass


class InvalidReplicationFactorError(ApiError):
    pass


class InvalidReplicaAssignmentError(ApiError):
    pass


class InvalidConfigurationError(ApiError):
    pass


class NotControllerError(RetriableError):
    pass


class InvalidRequestError(ApiError):
    pass


class UnsupportedForMessageFormatError(ApiError):
    pass


class PolicyViolationError(ApiError):
    pass


class OutOfOrderSequenceError(ApiError):
    pass


class DuplicateSequenceError(ApiError):
    pass


class InvalidProducerEpochError(ApiError):
    pass


class InvalidTxnStateError(ApiError):
    pass


class InvalidPidMappingError(ApiError):
    pass


class InvalidTxnTimeoutError(ApiError):
    pass


class ConcurrentTransactionsError(RetriableError):
    pass


class TransactionCoordinatorFencedError(ApiError):
    pass


class TransactionalIdAuthorizationError(ApiError):
    pass


class SecurityDisabledError(ApiError):
    pass


class OperationNotAttemptedError(ApiError):
    pass


class KafkaStorageError(InvalidMetadataError):
    pass


class LogDirNotFoundError(ApiError):
    pass


class SaslAuthenticationError(ApiError):
    pass


class UnknownProducerIdError(ApiError):
    pass


class ReassignmentInProgressError(ApiError):
    pass


class DelegationTokenDisabledError(ApiError):
    pass


class DelegationTokenNotFoundError(ApiError):
    pass


class DelegationTokenOwnerMismatchError(ApiError):
    pass


class UnsupportedByAuthenticationError(ApiError):
    pass


class DelegationTokenAuthorizationError(ApiError):
    pass


class DelegationTokenExpiredError(ApiError):
    pass


class InvalidPrincipalTypeError(ApiError):
    pass


class GroupNotEmptyError(ApiError):
    pass


class GroupIdNotFoundError(ApiError):
    pass


class FetchSessionIdNotFoundError(RetriableError):
    pass


class InvalidFetchSessionEpochError(RetriableError):
    pass


class ListenerNotFoundError(InvalidMetadataError):
    pass


class TopicDeletionDisabledError(ApiError):
    pass


class FencedLeaderEpochError(InvalidMetadataError):
    pass


class UnknownLeaderEpochError(RetriableError):
    pass


class UnsupportedCompressionTypeError(ApiError):
    pass


class StaleBrokerEpochError(ApiError):
    pass


class OffsetNotAvailableError(RetriableError):
    pass


class MemberIdRequiredError(ApiError):
    pass


class PreferredLeaderNotAvailableError(InvalidMetadataError):
    pass


class GroupMaxSizeReachedError(ApiError):
    pass


class FencedInstanceIdError(ApiError):
    pass


class EligibleLeadersNotAvailableError(InvalidMetadataError):
    pass


class ElectionNotNeededError(InvalidMetadataError):
    pass


class NoReassignmentInProgressError(ApiError):
    pass


class GroupSubscribedToTopicError(ApiError):
    pass


class InvalidRecordError(ApiError):
    pass


class UnstableOffsetCommitError(RetriableError):
    pass


class ThrottlingQuotaExceededError(RetriableError):
    pass


class ProducerFencedError(ApiError):
    pass


class ResourceNotFoundError(ApiError):
    pass


class DuplicateResourceError(ApiError):
    pass


class UnacceptableCredentialError(ApiError):
    pass


class InconsistentVoterSetError(ApiError):
    pass


class InvalidUpdateVersionError(ApiError):
    pass


class FeatureUpdateFailedError(ApiError):
    pass


class PrincipalDeserializationError(ApiError):
    pass


class SnapshotNotFoundError(ApiError):
    pass


class PositionOutOfRangeError(ApiError):
    pass


class UnknownTopicIdError(InvalidMetadataError):
    pass


class DuplicateBrokerRegistrationError(ApiError):
    pass


class BrokerIdNotRegisteredError(ApiError):
    pass


class InconsistentTopicIdError(InvalidMetadataError):
    pass


class InconsistentClusterIdError(ApiError):
    pass


class TransactionalIdNotFoundError(ApiError):
    pass


class FetchSessionTopicIdError(RetriableError):
    pass


class IneligibleReplicaError(ApiError):
    pass


class NewLeaderElectedError(ApiError):
    pass


class OffsetMovedToTieredStorageError(ApiError):
    pass


class FencedMemberEpochError(ApiError):
    pass


class UnreleasedInstanceIdError(ApiError):
    pass


class UnsupportedAssignorError(ApiError):
    pass


class StaleMemberEpochError(ApiError):
    pass


class MismatchedEndpointTypeError(ApiError):
    pass


class UnsupportedEndpointTypeError(ApiError):
    pass


class UnknownControllerIdError(ApiError):
    pass


class UnknownSubscriptionIdError(ApiError):
    pass


class TelemetryTooLargeError(ApiError):
    pass


class InvalidRegistrationError(ApiError):
    pass


class TransactionAbortableError(ApiError):
    pass


class InvalidRecordStateError(ApiError):
    pass


class ShareSessionNotFoundError(RetriableError):
    pass


class InvalidShareSessionEpochError(RetriableError):
    pass


class FencedStateEpochError(ApiError):
    pass


class InvalidVoterKeyError(ApiError):
    pass


class DuplicateVoterError(ApiError):
    pass


class VoterNotFoundError(ApiError):
    pass


class InvalidRegularExpressionError(ApiError):
    pass


class Errors(Enum):
    """Ports: org.apache.kafka.common.protocol.Errors"""

    UNKNOWN_SERVER_ERROR = (-1, UnknownServerError, "")
    NONE = (0, None, "")
    OFFSET_OUT_OF_RANGE = (1, OffsetOutOfRangeError, "")
    CORRUPT_MESSAGE = (2, CorruptRecordError, "")
    UNKNOWN_TOPIC_OR_PARTITION = (3, UnknownTopicOrPartitionError, "")
    INVALID_FETCH_SIZE = (4, InvalidFetchSizeError, "")
    LEADER_NOT_AVAILABLE = (5, LeaderNotAvailableError, "")
    NOT_LEADER_OR_FOLLOWER = (6, NotLeaderOrFollowerError, "")
    REQUEST_TIMED_OUT = (7, RequestTimeoutError, "")
    BROKER_NOT_AVAILABLE = (8, BrokerNotAvailableError, "")
    REPLICA_NOT_AVAILABLE = (9, ReplicaNotAvailableError, "")
    MESSAGE_TOO_LARGE = (10, RecordTooLargeError, "")
    STALE_CONTROLLER_EPOCH = (11, ControllerMovedError, "")
    OFFSET_METADATA_TOO_LARGE = (12, OffsetMetadataTooLargeError, "")
    NETWORK_EXCEPTION = (13, NetworkError, "")
    COORDINATOR_LOAD_IN_PROGRESS = (14, CoordinatorLoadInProgressError, "")
    COORDINATOR_NOT_AVAILABLE = (15, CoordinatorNotAvailableError, "")
    NOT_COORDINATOR = (16, NotCoordinatorError, "")
    INVALID_TOPIC_EXCEPTION = (17, InvalidTopicError, "")
    RECORD_LIST_TOO_LARGE = (18, RecordBatchTooLargeError, "")
    NOT_ENOUGH_REPLICAS = (19, NotEnoughReplicasError, "")
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (20, NotEnoughReplicasAfterAppendError, "")
    INVALID_REQUIRED_ACKS = (21, InvalidRequiredAcksError, "")
    ILLEGAL_GENERATION = (22, IllegalGenerationError, "")
    INCONSISTENT_GROUP_PROTOCOL = (23, InconsistentGroupProtocolError, "")
    INVALID_GROUP_ID = (24, InvalidGroupIdError, "")
    UNKNOWN_MEMBER_ID = (25, UnknownMemberIdError, "")
    INVALID_SESSION_TIMEOUT = (26, InvalidSessionTimeoutError, "")
    REBALANCE_IN_PROGRESS = (27, RebalanceInProgressError, "")
    INVALID_COMMIT_OFFSET_SIZE = (28, InvalidCommitOffsetSizeError, "")
    TOPIC_AUTHORIZATION_FAILED = (29, TopicAuthorizationError, "")
    GROUP_AUTHORIZATION_FAILED = (30, GroupAuthorizationError, "")
    CLUSTER_AUTHORIZATION_FAILED = (31, ClusterAuthorizationError, "")
    INVALID_TIMESTAMP = (32, InvalidTimestampError, "")
    UNSUPPORTED_SASL_MECHANISM = (33, UnsupportedSaslMechanismError, "")
    ILLEGAL_SASL_STATE = (34, IllegalSaslStateError, "")
    UNSUPPORTED_VERSION = (35, UnsupportedVersionError, "")
    TOPIC_ALREADY_EXISTS = (36, TopicExistsError, "")
    INVALID_PARTITIONS = (37, InvalidPartitionsError, "")
    INVALID_REPLICATION_FACTOR = (38, InvalidReplicationFactorError, "")
    INVALID_REPLICA_ASSIGNMENT = (39, InvalidReplicaAssignmentError, "")
    INVALID_CONFIG = (40, InvalidConfigurationError, "")
    NOT_CONTROLLER = (41, NotControllerError, "")
    INVALID_REQUEST = (42, InvalidRequestError, "")
    UNSUPPORTED_FOR_MESSAGE_FORMAT = (43, UnsupportedForMessageFormatError, "")
    POLICY_VIOLATION = (44, PolicyViolationError, "")
    OUT_OF_ORDER_SEQUENCE_NUMBER = (45, OutOfOrderSequenceError, "")
    DUPLICATE_SEQUENCE_NUMBER = (46, DuplicateSequenceError, "")
    INVALID_PRODUCER_EPOCH = (47, InvalidProducerEpochError, "")
    INVALID_TXN_STATE = (48, InvalidTxnStateError, "")
    INVALID_PRODUCER_ID_MAPPING = (49, InvalidPidMappingError, "")
    INVALID_TRANSACTION_TIMEOUT = (50, InvalidTxnTimeoutError, "")
    CONCURRENT_TRANSACTIONS = (51, ConcurrentTransactionsError, "")
    TRANSACTION_COORDINATOR_FENCED = (52, TransactionCoordinatorFencedError, "")
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (53, TransactionalIdAuthorizationError, "")
    SECURITY_DISABLED = (54, SecurityDisabledError, "")
    OPERATION_NOT_ATTEMPTED = (55, OperationNotAttemptedError, "")
    KAFKA_STORAGE_ERROR = (56, KafkaStorageError, "")
    LOG_DIR_NOT_FOUND = (57, LogDirNotFoundError, "")
    SASL_AUTHENTICATION_FAILED = (58, SaslAuthenticationError, "")
    UNKNOWN_PRODUCER_ID = (59, UnknownProducerIdError, "")
    REASSIGNMENT_IN_PROGRESS = (60, ReassignmentInProgressError, "")
    DELEGATION_TOKEN_AUTH_DISABLED = (61, DelegationTokenDisabledError, "")
    DELEGATION_TOKEN_NOT_FOUND = (62, DelegationTokenNotFoundError, "")
    DELEGATION_TOKEN_OWNER_MISMATCH = (63, DelegationTokenOwnerMismatchError, "")
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (64, UnsupportedByAuthenticationError, "")
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = (65, DelegationTokenAuthorizationError, "")
    DELEGATION_TOKEN_EXPIRED = (66, DelegationTokenExpiredError, "")
    INVALID_PRINCIPAL_TYPE = (67, InvalidPrincipalTypeError, "")
    NON_EMPTY_GROUP = (68, GroupNotEmptyError, "")
    GROUP_ID_NOT_FOUND = (69, GroupIdNotFoundError, "")
    FETCH_SESSION_ID_NOT_FOUND = (70, FetchSessionIdNotFoundError, "")
    INVALID_FETCH_SESSION_EPOCH = (71, InvalidFetchSessionEpochError, "")
    LISTENER_NOT_FOUND = (72, ListenerNotFoundError, "")
    TOPIC_DELETION_DISABLED = (73, TopicDeletionDisabledError, "")
    FENCED_LEADER_EPOCH = (74, FencedLeaderEpochError, "")
    UNKNOWN_LEADER_EPOCH = (75, UnknownLeaderEpochError, "")
    UNSUPPORTED_COMPRESSION_TYPE = (76, UnsupportedCompressionTypeError, "")
    STALE_BROKER_EPOCH = (77, StaleBrokerEpochError, "")
    OFFSET_NOT_AVAILABLE = (78, OffsetNotAvailableError, "")
    MEMBER_ID_REQUIRED = (79, MemberIdRequiredError, "")
    PREFERRED_LEADER_NOT_AVAILABLE = (80, PreferredLeaderNotAvailableError, "")
    GROUP_MAX_SIZE_REACHED = (81, GroupMaxSizeReachedError, "")
    FENCED_INSTANCE_ID = (82, FencedInstanceIdError, "")
    ELIGIBLE_LEADERS_NOT_AVAILABLE = (83, EligibleLeadersNotAvailableError, "")
    ELECTION_NOT_NEEDED = (84, ElectionNotNeededError, "")
    NO_REASSIGNMENT_IN_PROGRESS = (85, NoReassignmentInProgressError, "")
    GROUP_SUBSCRIBED_TO_TOPIC = (86, GroupSubscribedToTopicError, "")
    INVALID_RECORD = (87, InvalidRecordError, "")
    UNSTABLE_OFFSET_COMMIT = (88, UnstableOffsetCommitError, "")
    THROTTLING_QUOTA_EXCEEDED = (89, ThrottlingQuotaExceededError, "")
    PRODUCER_FENCED = (90, ProducerFencedError, "")
    RESOURCE_NOT_FOUND = (91, ResourceNotFoundError, "")
    DUPLICATE_RESOURCE = (92, DuplicateResourceError, "")
    UNACCEPTABLE_CREDENTIAL = (93, UnacceptableCredentialError, "")
    INCONSISTENT_VOTER_SET = (94, InconsistentVoterSetError, "")
    INVALID_UPDATE_VERSION = (95, InvalidUpdateVersionError, "")
    FEATURE_UPDATE_FAILED = (96, FeatureUpdateFailedError, "")
    PRINCIPAL_DESERIALIZATION_FAILURE = (97, PrincipalDeserializationError, "")
    SNAPSHOT_NOT_FOUND = (98, SnapshotNotFoundError, "")
    POSITION_OUT_OF_RANGE = (99, PositionOutOfRangeError, "")
    UNKNOWN_TOPIC_ID = (100, UnknownTopicIdError, "")
    DUPLICATE_BROKER_REGISTRATION = (101, DuplicateBrokerRegistrationError, "")
    BROKER_ID_NOT_REGISTERED = (102, BrokerIdNotRegisteredError, "")
    INCONSISTENT_TOPIC_ID = (103, InconsistentTopicIdError, "")
    INCONSISTENT_CLUSTER_ID = (104, InconsistentClusterIdError, "")
    TRANSACTIONAL_ID_NOT_FOUND = (105, TransactionalIdNotFoundError, "")
    FETCH_SESSION_TOPIC_ID_ERROR = (106, FetchSessionTopicIdError, "")
    INELIGIBLE_REPLICA = (107, IneligibleReplicaError, "")
    NEW_LEADER_ELECTED = (108, NewLeaderElectedError, "")
    OFFSET_MOVED_TO_TIERED_STORAGE = (109, OffsetMovedToTieredStorageError, "")
    FENCED_MEMBER_EPOCH = (110, FencedMemberEpochError, "")
    UNRELEASED_INSTANCE_ID = (111, UnreleasedInstanceIdError, "")
    UNSUPPORTED_ASSIGNOR = (112, UnsupportedAssignorError, "")
    STALE_MEMBER_EPOCH = (113, StaleMemberEpochError, "")
    MISMATCHED_ENDPOINT_TYPE = (114, MismatchedEndpointTypeError, "")
    UNSUPPORTED_ENDPOINT_TYPE = (115, UnsupportedEndpointTypeError, "")
    UNKNOWN_CONTROLLER_ID = (116, UnknownControllerIdError, "")
    UNKNOWN_SUBSCRIPTION_ID = (117, UnknownSubscriptionIdError, "")
    TELEMETRY_TOO_LARGE = (118, TelemetryTooLargeError, "")
    INVALID_REGISTRATION = (119, InvalidRegistrationError, "")
    TRANSACTION_ABORTABLE = (120, TransactionAbortableError, "")
    INVALID_RECORD_STATE = (121, InvalidRecordStateError, "")
    SHARE_SESSION_NOT_FOUND = (122, ShareSessionNotFoundError, "")
    INVALID_SHARE_SESSION_EPOCH = (123, InvalidShareSessionEpochError, "")
    FENCED_STATE_EPOCH = (124, FencedStateEpochError, "")
    INVALID_VOTER_KEY = (125, InvalidVoterKeyError, "")
    DUPLICATE_VOTER = (126, DuplicateVoterError, "")
    VOTER_NOT_FOUND = (127, VoterNotFoundError, "")
    INVALID_REGULAR_EXPRESSION = (128, InvalidRegularExpressionError, "")

    def __init__(self, code: int, exception: type[ApiError] | None, message: str) -> None:
        self.code = code
        self.exception_class = exception
        self.message = message

    def exception(self, message: str | None = None) -> ApiError:
        """A new exception of this error; NONE has none."""
        if self.exception_class is None:
            raise ValueError(f"{self.name} has no exception")
        return self.exception_class(message or self.message)

    @staticmethod
    def for_code(code: int) -> Errors:
        return _BY_CODE.get(code, Errors.UNKNOWN_SERVER_ERROR)

    @staticmethod
    def for_exception(error: BaseException) -> Errors:
        """The code of the nearest class in the exception's ancestry, else UNKNOWN_SERVER_ERROR."""
        for cls in type(error).__mro__:
            found = _BY_EXCEPTION.get(cls)
            if found is not None:
                return found
        return Errors.UNKNOWN_SERVER_ERROR


_BY_CODE = {error.code: error for error in Errors}
_BY_EXCEPTION: dict[type, Errors] = {
    error.exception_class: error for error in Errors if error.exception_class is not None
}
