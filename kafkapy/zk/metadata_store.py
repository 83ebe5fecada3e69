"""The seam between the broker and the place where cluster metadata lives: a tree of znodes.

Requests go out in batches and responses come back in the same order. Handlers hide ZooKeeper's
one-shot watches: registering a handler sets no watch yet; the next Exists or GetData (for a
ZNodeChangeHandler) or GetChildren (for a ZNodeChildChangeHandler) of its path does, and so does
each one after it. An event therefore tells only that something changed since that read, and
whoever handles it reads again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Protocol

from kafkapy.common.errors import KafkaError

# Matches every version in a conditional set, delete or check.
MATCH_ANY_VERSION = -1
# What a read answers in place of a version when the znode does not exist.
UNKNOWN_VERSION = -2


class StoreCode(IntEnum):
    """How a request ended, with ZooKeeper's codes.

    Ports: org.apache.zookeeper.KeeperException.Code
    """

    OK = 0
    SYSTEM_ERROR = -1
    RUNTIME_INCONSISTENCY = -2
    CONNECTION_LOSS = -4
    OPERATION_TIMEOUT = -7
    BAD_ARGUMENTS = -8
    NO_NODE = -101
    NO_AUTH = -102
    BAD_VERSION = -103
    NO_CHILDREN_FOR_EPHEMERALS = -108
    NODE_EXISTS = -110
    NOT_EMPTY = -111
    SESSION_EXPIRED = -112
    INVALID_ACL = -114
    AUTH_FAILED = -115


class StoreError(KafkaError):
    """A request to the metadata store ended with another code than OK.

    Ports: org.apache.zookeeper.KeeperException
    """

    def __init__(self, code: StoreCode, path: str | None) -> None:
        super().__init__(f"{code.name} for {path}" if path else code.name)
        self.code = code
        self.path = path

    @staticmethod
    def of(code: StoreCode, path: str | None) -> "StoreError":
        """The most specific exception for a code."""
        return _ERRORS.get(code, StoreError)(code, path)


class NoNodeError(StoreError):
    """The znode does not exist."""


class NodeExistsError(StoreError):
    """The znode to be created exists."""


class BadVersionError(StoreError):
    """The znode has another version than the one expected."""


class NotEmptyError(StoreError):
    """The znode to be deleted has children."""


class SessionExpiredError(StoreError):
    """The session under which the request was sent is over."""


class StoreClosedError(KafkaError):
    """The store was closed by this process."""


class StoreTimeoutError(KafkaError):
    """No connection to the store within the time allowed.

    Ports: kafka.zookeeper.ZooKeeperClientTimeoutException
    """


_ERRORS: dict[StoreCode, type[StoreError]] = {
    StoreCode.NO_NODE: NoNodeError,
    StoreCode.NODE_EXISTS: NodeExistsError,
    StoreCode.BAD_VERSION: BadVersionError,
    StoreCode.NOT_EMPTY: NotEmptyError,
    StoreCode.SESSION_EXPIRED: SessionExpiredError,
}


class CreateMode(Enum):
    """Ports: org.apache.zookeeper.CreateMode"""

    PERSISTENT = (False, False)
    PERSISTENT_SEQUENTIAL = (False, True)
    EPHEMERAL = (True, False)
    EPHEMERAL_SEQUENTIAL = (True, True)

    def __init__(self, ephemeral: bool, sequential: bool) -> None:
        self.ephemeral = ephemeral
        self.sequential = sequential


@dataclass(frozen=True, slots=True)
class Stat:
    """What the store knows about a znode beside its data.

    Ports: org.apache.zookeeper.data.Stat
    """

    czxid: int = 0
    mzxid: int = 0
    pzxid: int = 0
    ctime: int = 0
    mtime: int = 0
    version: int = 0
    cversion: int = 0
    ephemeral_owner: int = 0
    data_length: int = 0
    num_children: int = 0


@dataclass(frozen=True, slots=True)
class CreateRequest:
    """Create a znode; its parent must exist. Sequential modes append a ten-digit number."""

    path: str
    data: bytes | None = None
    create_mode: CreateMode = CreateMode.PERSISTENT


@dataclass(frozen=True, slots=True)
class DeleteRequest:
    path: str
    version: int = MATCH_ANY_VERSION


@dataclass(frozen=True, slots=True)
class SetDataRequest:
    path: str
    data: bytes | None
    version: int = MATCH_ANY_VERSION


@dataclass(frozen=True, slots=True)
class CheckOp:
    """Part of a MultiRequest: fails unless the znode has this version."""

    path: str
    version: int


@dataclass(frozen=True, slots=True)
class ExistsRequest:
    path: str


@dataclass(frozen=True, slots=True)
class GetDataRequest:
    path: str


@dataclass(frozen=True, slots=True)
class GetChildrenRequest:
    """List the names of the children; `register_watch` off leaves a registered handler alone."""

    path: str
    register_watch: bool = True


ZkOp = CreateRequest | DeleteRequest | SetDataRequest | CheckOp


@dataclass(frozen=True, slots=True)
class MultiRequest:
    """All of the operations or none of them."""

    ops: tuple[ZkOp, ...]

    @property
    def path(self) -> str:
        return self.ops[0].path if self.ops else ""


Request = (
    CreateRequest
    | DeleteRequest
    | SetDataRequest
    | ExistsRequest
    | GetDataRequest
    | GetChildrenRequest
    | MultiRequest
)


@dataclass(frozen=True, slots=True)
class Response:
    """What became of one request: the fields that the kind of request does not fill stay empty.

    `stat` is None unless the znode exists, and may be for a create inside a MultiRequest; `name` is
    the path made by a create, with its number. Null data may come back as empty data.

    Ports: kafka.zookeeper.AsyncResponse
    """

    path: str
    result_code: StoreCode
    data: bytes | None = None
    stat: Stat | None = None
    name: str | None = None
    children: tuple[str, ...] = ()
    results: tuple["Response", ...] = ()  # one per operation of a MultiRequest

    @property
    def ok(self) -> bool:
        return self.result_code is StoreCode.OK

    @property
    def exception(self) -> StoreError:
        return StoreError.of(self.result_code, self.path)

    def maybe_raise(self) -> None:
        if self.result_code is not StoreCode.OK:
            raise self.exception

    def stat_or_raise(self) -> Stat:
        self.maybe_raise()
        if self.stat is None:
            raise KafkaError(f"The store answered for {self.path} without its stat")
        return self.stat


class EventType(Enum):
    """Ports: org.apache.zookeeper.Watcher.Event.EventType"""

    NODE_CREATED = "NodeCreated"
    NODE_DELETED = "NodeDeleted"
    NODE_DATA_CHANGED = "NodeDataChanged"
    NODE_CHILDREN_CHANGED = "NodeChildrenChanged"


@dataclass(frozen=True, slots=True)
class WatchedEvent:
    """Ports: org.apache.zookeeper.WatchedEvent"""

    type: EventType
    path: str


class ZNodeChangeHandler:
    """Told on the event thread that its znode was created, deleted or given new data.

    Ports: kafka.zookeeper.ZNodeChangeHandler
    """

    path: str

    def handle_creation(self) -> None:
        """The znode exists now."""

    def handle_deletion(self) -> None:
        """The znode is gone."""

    def handle_data_change(self) -> None:
        """The znode has new data."""


class ZNodeChildChangeHandler:
    """Told on the event thread that a child of its znode came or went.

    Ports: kafka.zookeeper.ZNodeChildChangeHandler
    """

    path: str

    def handle_child_change(self) -> None:
        """The set of children differs from the last one read."""


class StateChangeHandler:
    """Told when one session has ended and before and after the next begins.

    Ports: kafka.zookeeper.StateChangeHandler
    """

    name: str

    def before_initializing_session(self) -> None:
        """The old session is over and its ephemeral znodes are going or gone."""

    def after_initializing_session(self) -> None:
        """A new session stands; no watch is set in it yet."""

    def on_auth_failure(self) -> None:
        """The store refused our credentials."""


class MetadataStore(Protocol):
    """A session with a znode tree. Thread-safe; handlers run in order on one event thread.

    Ports: kafka.zookeeper.ZooKeeperClient
    """

    @property
    def session_id(self) -> int: ...

    def handle_requests(self, requests: Sequence[Request]) -> list[Response]:
        """One response per request, in order. Raises only when the store as a whole is unusable:
        StoreClosedError after `close`, KafkaStorageError when an embedded store cannot write."""
        ...

    def wait_until_connected(self) -> None:
        """Block until requests can be sent; StoreClosedError once the store is closed."""
        ...

    def register_znode_change_handler(self, handler: ZNodeChangeHandler) -> None: ...

    def unregister_znode_change_handler(self, path: str) -> None: ...

    def register_znode_child_change_handler(self, handler: ZNodeChildChangeHandler) -> None: ...

    def unregister_znode_child_change_handler(self, path: str) -> None: ...

    def register_state_change_handler(self, handler: StateChangeHandler) -> None: ...

    def unregister_state_change_handler(self, name: str) -> None: ...

    def close(self) -> None: ...
