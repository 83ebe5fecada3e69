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


class AuthenticationError(ApiError):
    """The peer and this side do not accept each other; trying again the same way cannot help.

    Ports: org.apache.kafka.common.errors.AuthenticationException
    """


class SslAuthenticationError(AuthenticationError):
    """The TLS handshake failed: a certificate, a host name or the protocol is not acceptable.

    Ports: org.apache.kafka.common.errors.SslAuthenticationException
    """


# fmt: off
# One line each: the text of an error stands in its row of Errors.
class UnknownServerError(ApiError): ...
class OffsetOutOfRangeError(ApiError): ...
class CorruptRecordError(RetriableError): ...
class UnknownTopicOrPartitionError(InvalidMetadataError): ...
class InvalidFetchSizeError(ApiError): ...
class LeaderNotAvailableError(InvalidMetadataError): ...
class NotLeaderOrFollowerError(InvalidMetadataError): ...
class RequestTimeoutError(RetriableError): ...
class BrokerNotAvailableError(ApiError): ...
class ReplicaNotAvailableError(InvalidMetadataError): ...
class RecordTooLargeError(ApiError): ...
class ControllerMovedError(ApiError): ...
class OffsetMetadataTooLargeError(ApiError): ...
class NetworkError(InvalidMetadataError): ...
class CoordinatorLoadInProgressError(RetriableError): ...
class CoordinatorNotAvailableError(RetriableError): ...
class NotCoordinatorError(RetriableError): ...
class InvalidTopicError(ApiError): ...
class RecordBatchTooLargeError(ApiError): ...
class NotEnoughReplicasError(RetriableError): ...
class NotEnoughReplicasAfterAppendError(RetriableError): ...
class InvalidRequiredAcksError(ApiError): ...
class IllegalGenerationError(ApiError): ...
class InconsistentGroupProtocolError(ApiError): ...
class InvalidGroupIdError(ApiError): ...
class UnknownMemberIdError(ApiError): ...
class InvalidSessionTimeoutError(ApiError): ...
class RebalanceInProgressError(ApiError): ...
class InvalidCommitOffsetSizeError(ApiError): ...
class TopicAuthorizationError(ApiError): ...
class GroupAuthorizationError(ApiError): ...
class ClusterAuthorizationError(ApiError): ...
class InvalidTimestampError(ApiError): ...
class UnsupportedSaslMechanismError(AuthenticationError): ...
class IllegalSaslStateError(AuthenticationError): ...
class UnsupportedVersionError(ApiError): ...
class TopicExistsError(ApiError): ...
class InvalidPartitionsError(ApiError): ...
class InvalidReplicationFactorError(ApiError): ...
class InvalidReplicaAssignmentError(ApiError): ...
class InvalidConfigurationError(ApiError): ...
class NotControllerError(RetriableError): ...
class InvalidRequestError(ApiError): ...
class UnsupportedForMessageFormatError(ApiError): ...
class PolicyViolationError(ApiError): ...
class OutOfOrderSequenceError(ApiError): ...
class DuplicateSequenceError(ApiError): ...
class InvalidProducerEpochError(ApiError): ...
class InvalidTxnStateError(ApiError): ...
class InvalidPidMappingError(ApiError): ...
class InvalidTxnTimeoutError(ApiError): ...
class ConcurrentTransactionsError(RetriableError): ...
class TransactionCoordinatorFencedError(ApiError): ...
class TransactionalIdAuthorizationError(ApiError): ...
class SecurityDisabledError(ApiError): ...
class OperationNotAttemptedError(ApiError): ...
class KafkaStorageError(InvalidMetadataError): ...
class LogDirNotFoundError(ApiError): ...
class SaslAuthenticationError(AuthenticationError): ...
class UnknownProducerIdError(ApiError): ...
class ReassignmentInProgressError(ApiError): ...
class DelegationTokenDisabledError(ApiError): ...
class DelegationTokenNotFoundError(ApiError): ...
class DelegationTokenOwnerMismatchError(ApiError): ...
class UnsupportedByAuthenticationError(ApiError): ...
class DelegationTokenAuthorizationError(ApiError): ...
class DelegationTokenExpiredError(ApiError): ...
class InvalidPrincipalTypeError(ApiError): ...
class GroupNotEmptyError(ApiError): ...
class GroupIdNotFoundError(ApiError): ...
class FetchSessionIdNotFoundError(RetriableError): ...
class InvalidFetchSessionEpochError(RetriableError): ...
class ListenerNotFoundError(InvalidMetadataError): ...
class TopicDeletionDisabledError(ApiError): ...
class FencedLeaderEpochError(InvalidMetadataError): ...
class UnknownLeaderEpochError(RetriableError): ...
class UnsupportedCompressionTypeError(ApiError): ...
class StaleBrokerEpochError(ApiError): ...
class OffsetNotAvailableError(RetriableError): ...
class MemberIdRequiredError(ApiError): ...
class PreferredLeaderNotAvailableError(InvalidMetadataError): ...
class GroupMaxSizeReachedError(ApiError): ...
class FencedInstanceIdError(ApiError): ...
class EligibleLeadersNotAvailableError(InvalidMetadataError): ...
class ElectionNotNeededError(InvalidMetadataError): ...
class NoReassignmentInProgressError(ApiError): ...
class GroupSubscribedToTopicError(ApiError): ...
class InvalidRecordError(ApiError): ...
class UnstableOffsetCommitError(RetriableError): ...
class ThrottlingQuotaExceededError(RetriableError): ...
class ProducerFencedError(ApiError): ...
class ResourceNotFoundError(ApiError): ...
class DuplicateResourceError(ApiError): ...
class UnacceptableCredentialError(ApiError): ...
class InconsistentVoterSetError(ApiError): ...
class InvalidUpdateVersionError(ApiError): ...
class FeatureUpdateFailedError(ApiError): ...
class PrincipalDeserializationError(ApiError): ...
class SnapshotNotFoundError(ApiError): ...
class PositionOutOfRangeError(ApiError): ...
class UnknownTopicIdError(InvalidMetadataError): ...
class DuplicateBrokerRegistrationError(ApiError): ...
class BrokerIdNotRegisteredError(ApiError): ...
class InconsistentTopicIdError(InvalidMetadataError): ...
class InconsistentClusterIdError(ApiError): ...
class TransactionalIdNotFoundError(ApiError): ...
class FetchSessionTopicIdError(RetriableError): ...
class IneligibleReplicaError(ApiError): ...
class NewLeaderElectedError(ApiError): ...
class OffsetMovedToTieredStorageError(ApiError): ...
class FencedMemberEpochError(ApiError): ...
class UnreleasedInstanceIdError(ApiError): ...
class UnsupportedAssignorError(ApiError): ...
class StaleMemberEpochError(ApiError): ...
class MismatchedEndpointTypeError(ApiError): ...
class UnsupportedEndpointTypeError(ApiError): ...
class UnknownControllerIdError(ApiError): ...
class UnknownSubscriptionIdError(ApiError): ...
class TelemetryTooLargeError(ApiError): ...
class InvalidRegistrationError(ApiError): ...
class TransactionAbortableError(ApiError): ...
class InvalidRecordStateError(ApiError): ...
class ShareSessionNotFoundError(RetriableError): ...
class InvalidShareSessionEpochError(RetriableError): ...
class FencedStateEpochError(ApiError): ...
class InvalidVoterKeyError(ApiError): ...
class DuplicateVoterError(ApiError): ...
class VoterNotFoundError(ApiError): ...
class InvalidRegularExpressionError(ApiError): ...
# fmt: on


class Errors(Enum):
    """Ports: org.apache.kafka.common.protocol.Errors"""

    # fmt: off
    # code, exception, text
    UNKNOWN_SERVER_ERROR = (-1, UnknownServerError,
        "The server failed in a way that has no code of its own.")
    NONE = (0, None, "")
    OFFSET_OUT_OF_RANGE = (1, OffsetOutOfRangeError, "The log does not reach the requested offset.")
    CORRUPT_MESSAGE = (2, CorruptRecordError,
        "A record is damaged: its checksum, size or form is wrong.")
    UNKNOWN_TOPIC_OR_PARTITION = (3, UnknownTopicOrPartitionError,
        "This broker does not host the topic or partition.")
    INVALID_FETCH_SIZE = (4, InvalidFetchSizeError,
        "The size asked for in the fetch makes no sense.")
    LEADER_NOT_AVAILABLE = (5, LeaderNotAvailableError,
        "The partition has no leader yet, as happens during elections.")
    NOT_LEADER_OR_FOLLOWER = (6, NotLeaderOrFollowerError,
        "This broker does not hold the replica in the role that the request needs.")
    REQUEST_TIMED_OUT = (7, RequestTimeoutError,
        "The request could not be completed within its time limit.")
    BROKER_NOT_AVAILABLE = (8, BrokerNotAvailableError, "No such broker is alive.")
    REPLICA_NOT_AVAILABLE = (9, ReplicaNotAvailableError,
        "The replica is not on this broker, or not ready here.")
    MESSAGE_TOO_LARGE = (10, RecordTooLargeError, "A record batch is larger than the topic allows.")
    STALE_CONTROLLER_EPOCH = (11, ControllerMovedError,
        "Another controller has taken over since the sender was elected.")
    OFFSET_METADATA_TOO_LARGE = (12, OffsetMetadataTooLargeError,
        "The text attached to a committed offset is too long.")
    NETWORK_EXCEPTION = (13, NetworkError, "The connection ended before the answer arrived.")
    COORDINATOR_LOAD_IN_PROGRESS = (14, CoordinatorLoadInProgressError,
        "The coordinator is still reading its state and cannot answer yet.")
    COORDINATOR_NOT_AVAILABLE = (15, CoordinatorNotAvailableError,
        "No coordinator can be reached at the moment.")
    NOT_COORDINATOR = (16, NotCoordinatorError,
        "Another broker coordinates this group or transaction.")
    INVALID_TOPIC_EXCEPTION = (17, InvalidTopicError,
        "The topic name is not legal, or the topic may not be used this way.")
    RECORD_LIST_TOO_LARGE = (18, RecordBatchTooLargeError,
        "A batch of records is larger than a log segment may be.")
    NOT_ENOUGH_REPLICAS = (19, NotEnoughReplicasError,
        "Too few replicas are in sync to accept the write.")
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (20, NotEnoughReplicasAfterAppendError,
        "The records were written, but too few replicas were in sync afterwards.")
    INVALID_REQUIRED_ACKS = (21, InvalidRequiredAcksError, "The acks setting must be -1, 0 or 1.")
    ILLEGAL_GENERATION = (22, IllegalGenerationError,
        "The request names a generation that is not the group's current one.")
    INCONSISTENT_GROUP_PROTOCOL = (23, InconsistentGroupProtocolError,
        "The member shares no protocol with the rest of the group, or named none.")
    INVALID_GROUP_ID = (24, InvalidGroupIdError, "The group id is not legal.")
    UNKNOWN_MEMBER_ID = (25, UnknownMemberIdError, "The group has no such member.")
    INVALID_SESSION_TIMEOUT = (26, InvalidSessionTimeoutError,
        "The session timeout is outside the limits set on the broker.")
    REBALANCE_IN_PROGRESS = (27, RebalanceInProgressError,
        "The group is rebalancing, so the member has to join again.")
    INVALID_COMMIT_OFFSET_SIZE = (28, InvalidCommitOffsetSizeError,
        "The offset record would be larger than the offsets topic allows.")
    TOPIC_AUTHORIZATION_FAILED = (29, TopicAuthorizationError,
        "The client may not do this to the topic.")
    GROUP_AUTHORIZATION_FAILED = (30, GroupAuthorizationError,
        "The client may not do this to the group.")
    CLUSTER_AUTHORIZATION_FAILED = (31, ClusterAuthorizationError,
        "The client may not do this to the cluster.")
    INVALID_TIMESTAMP = (32, InvalidTimestampError,
        "A record's timestamp is outside the accepted range.")
    UNSUPPORTED_SASL_MECHANISM = (33, UnsupportedSaslMechanismError,
        "The broker has not enabled this SASL mechanism.")
    ILLEGAL_SASL_STATE = (34, IllegalSaslStateError,
        "This request does not belong at this point of the SASL exchange.")
    UNSUPPORTED_VERSION = (35, UnsupportedVersionError,
        "The server does not know this version of the API.")
    TOPIC_ALREADY_EXISTS = (36, TopicExistsError, "There is a topic of this name already.")
    INVALID_PARTITIONS = (37, InvalidPartitionsError, "The number of partitions is not legal.")
    INVALID_REPLICATION_FACTOR = (38, InvalidReplicationFactorError,
        "The replication factor is below 1 or above the number of brokers.")
    INVALID_REPLICA_ASSIGNMENT = (39, InvalidReplicaAssignmentError,
        "The given placement of replicas is not legal.")
    INVALID_CONFIG = (40, InvalidConfigurationError,
        "A setting is unknown or its value is not legal.")
    NOT_CONTROLLER = (41, NotControllerError, "Another broker is the controller.")
    INVALID_REQUEST = (42, InvalidRequestError,
        "The request contradicts itself or cannot be understood.")
    UNSUPPORTED_FOR_MESSAGE_FORMAT = (43, UnsupportedForMessageFormatError,
        "The topic's record format is too old for this request.")
    POLICY_VIOLATION = (44, PolicyViolationError, "A policy of this cluster forbids the request.")
    OUT_OF_ORDER_SEQUENCE_NUMBER = (45, OutOfOrderSequenceError,
        "The producer's sequence number does not follow the last one written.")
    DUPLICATE_SEQUENCE_NUMBER = (46, DuplicateSequenceError,
        "The producer's batch was written before.")
    INVALID_PRODUCER_EPOCH = (47, InvalidProducerEpochError,
        "A newer instance of the producer has written already.")
    INVALID_TXN_STATE = (48, InvalidTxnStateError,
        "The transaction's state does not permit this step.")
    INVALID_PRODUCER_ID_MAPPING = (49, InvalidPidMappingError,
        "The producer id does not belong to the transactional id.")
    INVALID_TRANSACTION_TIMEOUT = (50, InvalidTxnTimeoutError,
        "The transaction timeout exceeds the broker's limit.")
    CONCURRENT_TRANSACTIONS = (51, ConcurrentTransactionsError,
        "The previous transaction of this producer is still being completed.")
    TRANSACTION_COORDINATOR_FENCED = (52, TransactionCoordinatorFencedError,
        "A newer transaction coordinator has taken over from the sender.")
    TRANSACTIONAL_ID_AUTHORIZATION_FAILED = (53, TransactionalIdAuthorizationError,
        "The client may not use this transactional id.")
    SECURITY_DISABLED = (54, SecurityDisabledError,
        "No authorizer or security feature is set up for this request.")
    OPERATION_NOT_ATTEMPTED = (55, OperationNotAttemptedError,
        "Another error stopped the request before this part was tried.")
    KAFKA_STORAGE_ERROR = (56, KafkaStorageError,
        "The log directory failed or could not be read or written.")
    LOG_DIR_NOT_FOUND = (57, LogDirNotFoundError, "The broker has no such log directory.")
    SASL_AUTHENTICATION_FAILED = (58, SaslAuthenticationError,
        "The client could not prove who it is.")
    UNKNOWN_PRODUCER_ID = (59, UnknownProducerIdError,
        "The broker holds no state of this producer any more.")
    REASSIGNMENT_IN_PROGRESS = (60, ReassignmentInProgressError,
        "The partition's replicas are being moved.")
    DELEGATION_TOKEN_AUTH_DISABLED = (61, DelegationTokenDisabledError,
        "Delegation tokens are not enabled on this cluster.")
    DELEGATION_TOKEN_NOT_FOUND = (62, DelegationTokenNotFoundError,
        "There is no such delegation token.")
    DELEGATION_TOKEN_OWNER_MISMATCH = (63, DelegationTokenOwnerMismatchError,
        "The delegation token belongs to somebody else.")
    DELEGATION_TOKEN_REQUEST_NOT_ALLOWED = (64, UnsupportedByAuthenticationError,
        "Delegation tokens cannot be managed over a connection authenticated this way.")
    DELEGATION_TOKEN_AUTHORIZATION_FAILED = (65, DelegationTokenAuthorizationError,
        "The client may not use this delegation token.")
    DELEGATION_TOKEN_EXPIRED = (66, DelegationTokenExpiredError,
        "The delegation token is past its end.")
    INVALID_PRINCIPAL_TYPE = (67, InvalidPrincipalTypeError,
        "This type of principal is not accepted here.")
    NON_EMPTY_GROUP = (68, GroupNotEmptyError, "The group still has members.")
    GROUP_ID_NOT_FOUND = (69, GroupIdNotFoundError, "There is no such group.")
    FETCH_SESSION_ID_NOT_FOUND = (70, FetchSessionIdNotFoundError,
        "The broker does not hold this fetch session, perhaps no longer.")
    INVALID_FETCH_SESSION_EPOCH = (71, InvalidFetchSessionEpochError,
        "The fetch does not continue its session where the last one ended.")
    LISTENER_NOT_FOUND = (72, ListenerNotFoundError,
        "The partition leader has no listener of the name the client came in by.")
    TOPIC_DELETION_DISABLED = (73, TopicDeletionDisabledError,
        "This cluster does not permit topics to be deleted.")
    FENCED_LEADER_EPOCH = (74, FencedLeaderEpochError,
        "The request carries an older leader epoch than the broker's.")
    UNKNOWN_LEADER_EPOCH = (75, UnknownLeaderEpochError,
        "The request carries a newer leader epoch than the broker's.")
    UNSUPPORTED_COMPRESSION_TYPE = (76, UnsupportedCompressionTypeError,
        "The client's version cannot handle the compression of these records.")
    STALE_BROKER_EPOCH = (77, StaleBrokerEpochError,
        "The broker has registered again since this epoch was given to it.")
    OFFSET_NOT_AVAILABLE = (78, OffsetNotAvailableError,
        "A new leader does not know its high watermark yet.")
    MEMBER_ID_REQUIRED = (79, MemberIdRequiredError,
        "The member must join again with the id it has just been given.")
    PREFERRED_LEADER_NOT_AVAILABLE = (80, PreferredLeaderNotAvailableError,
        "The preferred leader is offline or not in sync.")
    GROUP_MAX_SIZE_REACHED = (81, GroupMaxSizeReachedError,
        "The group has as many members as it may have.")
    FENCED_INSTANCE_ID = (82, FencedInstanceIdError,
        "Another consumer has registered under the same instance id.")
    ELIGIBLE_LEADERS_NOT_AVAILABLE = (83, EligibleLeadersNotAvailableError,
        "No replica that could lead the partition is available.")
    ELECTION_NOT_NEEDED = (84, ElectionNotNeededError,
        "The partition already has the leader that the election would choose.")
    NO_REASSIGNMENT_IN_PROGRESS = (85, NoReassignmentInProgressError,
        "The partition's replicas are not being moved.")
    GROUP_SUBSCRIBED_TO_TOPIC = (86, GroupSubscribedToTopicError,
        "The group is consuming the topic, so its offsets stay.")
    INVALID_RECORD = (87, InvalidRecordError,
        "The broker's validation refused a record of the batch.")
    UNSTABLE_OFFSET_COMMIT = (88, UnstableOffsetCommitError,
        "A transaction that commits offsets of this group has not ended yet.")
    THROTTLING_QUOTA_EXCEEDED = (89, ThrottlingQuotaExceededError,
        "The client is above its quota for such requests.")
    PRODUCER_FENCED = (90, ProducerFencedError,
        "A newer producer has started with the same transactional id.")
    RESOURCE_NOT_FOUND = (91, ResourceNotFoundError,
        "The request names something that does not exist.")
    DUPLICATE_RESOURCE = (92, DuplicateResourceError,
        "The request names the same thing twice, or it exists already.")
    UNACCEPTABLE_CREDENTIAL = (93, UnacceptableCredentialError,
        "The credential does not meet the requirements.")
    INCONSISTENT_VOTER_SET = (94, InconsistentVoterSetError,
        "The two sides disagree about who votes in the quorum.")
    INVALID_UPDATE_VERSION = (95, InvalidUpdateVersionError,
        "The proposed change starts from an outdated version.")
    FEATURE_UPDATE_FAILED = (96, FeatureUpdateFailedError,
        "The feature levels could not be changed.")
    PRINCIPAL_DESERIALIZATION_FAILURE = (97, PrincipalDeserializationError,
        "The principal inside a forwarded request cannot be read.")
    SNAPSHOT_NOT_FOUND = (98, SnapshotNotFoundError, "There is no such snapshot.")
    POSITION_OUT_OF_RANGE = (99, PositionOutOfRangeError,
        "The position is beyond the end of the snapshot.")
    UNKNOWN_TOPIC_ID = (100, UnknownTopicIdError, "This broker knows no topic with this id.")
    DUPLICATE_BROKER_REGISTRATION = (101, DuplicateBrokerRegistrationError,
        "A live broker is registered under this id.")
    BROKER_ID_NOT_REGISTERED = (102, BrokerIdNotRegisteredError,
        "No broker is registered under this id.")
    INCONSISTENT_TOPIC_ID = (103, InconsistentTopicIdError,
        "The topic id differs from the one stored in the log.")
    INCONSISTENT_CLUSTER_ID = (104, InconsistentClusterIdError,
        "The request was meant for another cluster.")
    TRANSACTIONAL_ID_NOT_FOUND = (105, TransactionalIdNotFoundError,
        "The coordinator holds no state of this transactional id.")
    FETCH_SESSION_TOPIC_ID_ERROR = (106, FetchSessionTopicIdError,
        "One fetch session cannot mix topic names and topic ids.")
    INELIGIBLE_REPLICA = (107, IneligibleReplicaError,
        "A proposed in-sync replica may not be one now.")
    NEW_LEADER_ELECTED = (108, NewLeaderElectedError,
        "The change took effect and gave the partition a new leader.")
    OFFSET_MOVED_TO_TIERED_STORAGE = (109, OffsetMovedToTieredStorageError,
        "The offset is no longer on local disk, only in remote storage.")
    FENCED_MEMBER_EPOCH = (110, FencedMemberEpochError,
        "The coordinator fenced the member's epoch, so it has to join again.")
    UNRELEASED_INSTANCE_ID = (111, UnreleasedInstanceIdError,
        "A member that has not left yet still holds this instance id.")
    UNSUPPORTED_ASSIGNOR = (112, UnsupportedAssignorError,
        "The group cannot use the assignor that the member names.")
    STALE_MEMBER_EPOCH = (113, StaleMemberEpochError,
        "The member must learn its new epoch and try again.")
    MISMATCHED_ENDPOINT_TYPE = (114, MismatchedEndpointTypeError,
        "The request went to a broker instead of a controller, or the reverse.")
    UNSUPPORTED_ENDPOINT_TYPE = (115, UnsupportedEndpointTypeError,
        "Endpoints of this type are not supported.")
    UNKNOWN_CONTROLLER_ID = (116, UnknownControllerIdError, "There is no controller with this id.")
    UNKNOWN_SUBSCRIPTION_ID = (117, UnknownSubscriptionIdError,
        "The client's metrics subscription is out of date.")
    TELEMETRY_TOO_LARGE = (118, TelemetryTooLargeError,
        "The client sent more metrics data than the broker takes.")
    INVALID_REGISTRATION = (119, InvalidRegistrationError,
        "The controller cannot accept this registration.")
    TRANSACTION_ABORTABLE = (120, TransactionAbortableError,
        "The transaction cannot go on, but the producer can after aborting it.")
    INVALID_RECORD_STATE = (121, InvalidRecordStateError,
        "The record's delivery state does not permit this acknowledgement.")
    SHARE_SESSION_NOT_FOUND = (122, ShareSessionNotFoundError,
        "The broker does not hold this share session.")
    INVALID_SHARE_SESSION_EPOCH = (123, InvalidShareSessionEpochError,
        "The request does not continue its share session where the last one ended.")
    FENCED_STATE_EPOCH = (124, FencedStateEpochError,
        "The share coordinator has seen a newer state epoch.")
    INVALID_VOTER_KEY = (125, InvalidVoterKeyError,
        "The voter key is not that of the replica that received the request.")
    DUPLICATE_VOTER = (126, DuplicateVoterError, "The voter belongs to the quorum already.")
    VOTER_NOT_FOUND = (127, VoterNotFoundError, "The quorum has no such voter.")
    INVALID_REGULAR_EXPRESSION = (128, InvalidRegularExpressionError,
        "The regular expression is not legal.")
    # fmt: on

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
