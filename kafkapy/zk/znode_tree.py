"""The znode tree of an embedded store: one SQLite file, read and written by one process.

Layout of the file (`user_version` 1):

    znode   path, parent, data (NULL allowed), czxid, mzxid, pzxid, ctime, mtime, version,
            created (children ever created: numbers sequential names), ephemeral_owner
    meta    zxid, session_id: the last ones given out

A batch of requests is one SQLite transaction, synced before any of its answers is given, so a
hundred partition states cost one fsync. A kill at any moment leaves whole batches.
"""

import os
import sqlite3
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import assert_never

from kafkapy.common.errors import KafkaStorageError
from kafkapy.utils.time import Time
from kafkapy.zk.metadata_store import (
    MATCH_ANY_VERSION,
    CheckOp,
    CreateRequest,
    DeleteRequest,
    EventType,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    MultiRequest,
    Request,
    Response,
    SetDataRequest,
    Stat,
    StoreCode,
    StoreError,
    WatchedEvent,
    ZkOp,
)

_SCHEMA_VERSION = 1
_SCHEMA = """
CREATE TABLE znode (
  path TEXT PRIMARY KEY, parent TEXT NOT NULL, data BLOB,
  czxid INTEGER NOT NULL, mzxid INTEGER NOT NULL, pzxid INTEGER NOT NULL,
  ctime INTEGER NOT NULL, mtime INTEGER NOT NULL,
  version INTEGER NOT NULL DEFAULT 0, created INTEGER NOT NULL DEFAULT 0,
  ephemeral_owner INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;
CREATE INDEX znode_parent ON znode (parent);
CREATE INDEX znode_ephemeral ON znode (ephemeral_owner) WHERE ephemeral_owner != 0;
CREATE TABLE meta (key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO meta VALUES ('zxid', 0), ('session_id', 0);
INSERT INTO znode (path, parent, data, czxid, mzxid, pzxid, ctime, mtime)
  VALUES ('/', '', x'', 0, 0, 0, 0, 0);
"""
_STAT_COLUMNS = (
    "czxid, mzxid, pzxid, ctime, mtime, version, created, ephemeral_owner, length(data),"
    " (SELECT count(*) FROM znode AS child WHERE child.parent = znode.path)"
)
_Write = CreateRequest | DeleteRequest | SetDataRequest


Deliver = Callable[[WatchedEvent], None]


class ZnodeTree:
    """Znodes on disk and the watches of the sessions reading them. Thread-safe.

    `Deliver` callbacks are called with the lock held, in the order of the changes: they only queue.

    Ports: org.apache.zookeeper.server.DataTree
    """

    def __init__(self, path: Path | None, time: Time, *, image: bytes | None = None) -> None:
        """Without a path the tree is in memory only, and begins as `image` if there is one."""
        self.path = path or Path(":memory:")  # constant after construction
        self._time = time
        self._lock = threading.Lock()
        # guarded by self._lock, like all below
        self._db = self._open() if path is not None else _open_in_memory(image)
        self._closed = False
        try:
            self._zxid = self._meta("zxid")
            self._session_id = self._meta("session_id")
        except KafkaStorageError:
            self._db.close()
            raise
        self._sessions: dict[int, Deliver] = {}
        self._data_watches: defaultdict[str, set[int]] = defaultdict(set)
        self._child_watches: defaultdict[str, set[int]] = defaultdict(set)
        self._fired: list[WatchedEvent] = []  # by the transaction that is running

    def open_session(self, deliver: Deliver) -> int:
        """A session id never given before; ephemerals of sessions no longer here are deleted."""
        with self._lock:
            session_id = self._session_id + 1
            with self._transaction_locked():
                self._db.execute(
                    "UPDATE meta SET value = ? WHERE key = 'session_id'", (session_id,)
                )
                owners = self._db.execute(
                    "SELECT DISTINCT ephemeral_owner FROM znode WHERE ephemeral_owner != 0"
                ).fetchall()
                for (owner,) in owners:
                    if owner not in self._sessions:
                        self._delete_ephemerals_locked(owner)
            self._session_id = session_id
            self._sessions[session_id] = deliver
            return session_id

    def close_session(self, session_id: int) -> None:
        """Drop the session's watches, then its ephemerals. Its events may still be queued."""
        with self._lock:
            if self._sessions.pop(session_id, None) is None:
                return
            for watches in (self._data_watches, self._child_watches):
                for watchers in watches.values():
                    watchers.discard(session_id)
            with self._transaction_locked():
                self._delete_ephemerals_locked(session_id)

    @property
    def last_zxid(self) -> int:
        """Higher after every change."""
        return self._zxid

    def image(self) -> bytes:
        """All of it, for another tree to begin with; sessions are not in it."""
        with self._lock, self._storage_errors():
            return self._db.serialize()

    @property
    def has_sessions(self) -> bool:
        with self._lock:
            return bool(self._sessions)

    def handle_requests(
        self,
        session_id: int,
        requests: Sequence[Request],
        should_watch: Callable[[Request], bool],
    ) -> list[Response]:
        """Apply the requests in order; a failed one does not stop those after it."""
        with self._lock:
            if session_id not in self._sessions:
                return [Response(r.path, StoreCode.SESSION_EXPIRED) for r in requests]
            if all(
                isinstance(r, ExistsRequest | GetDataRequest | GetChildrenRequest) for r in requests
            ):
                with self._storage_errors():
                    return [self._apply_locked(session_id, r, should_watch) for r in requests]
            with self._transaction_locked():
                return [self._apply_locked(session_id, r, should_watch) for r in requests]

    def close(self) -> None:
        with self._lock:
            if not self._closed:
                self._closed = True
                self._db.close()

    # Opening

    def _open(self) -> sqlite3.Connection:
        is_new = not self.path.exists()
        try:
            db = sqlite3.connect(
                self.path, isolation_level=None, check_same_thread=False, timeout=0
            )
        except sqlite3.Error as e:
            raise KafkaStorageError(f"Cannot open metadata store {self.path}: {e}") from e
        try:
            # Exclusive: no second process, and no shared-memory file beside the write-ahead log.
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = FULL")
            db.execute("PRAGMA fullfsync = 1")  # macOS: fsync alone does not reach the platter
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version == 0:
                db.executescript(
                    f"BEGIN; {_SCHEMA} PRAGMA user_version = {_SCHEMA_VERSION}; COMMIT;"
                )
            elif version != _SCHEMA_VERSION:
                raise KafkaStorageError(
                    f"Metadata store {self.path} has version {version}, expected {_SCHEMA_VERSION}"
                )
        except sqlite3.Error as e:
            db.close()
            raise KafkaStorageError(f"Cannot open metadata store {self.path}: {e}") from e
        except KafkaStorageError:
            db.close()
            raise
        if is_new:
            _fsync_directory(self.path.parent)
        return db

    def _meta(self, key: str) -> int:
        with self._storage_errors():
            row = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        if row is None:
            raise KafkaStorageError(f"Metadata store {self.path} has no {key}")
        return int(row[0])

    # Transactions

    @contextmanager
    def _transaction_locked(self) -> Iterator[None]:
        """Commit, then deliver the events of the changes; or leave no trace."""
        zxid = self._zxid
        self._fired.clear()
        with self._storage_errors():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                if self._zxid != zxid:
                    self._db.execute("UPDATE meta SET value = ? WHERE key = 'zxid'", (self._zxid,))
                self._db.execute("COMMIT")
            except BaseException:
                self._zxid = zxid
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise
        for event in self._fired:
            self._trigger_locked(event)
        self._fired.clear()

    @contextmanager
    def _storage_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as e:
            raise KafkaStorageError(f"Metadata store {self.path} failed: {e}") from e

    # Requests

    def _apply_locked(
        self, session_id: int, request: Request, should_watch: Callable[[Request], bool]
    ) -> Response:
        match request:
            case ExistsRequest(path):
                stat = self._stat_locked(path)
                if should_watch(request):
                    self._data_watches[path].add(session_id)
                return Response(path, StoreCode.OK if stat else StoreCode.NO_NODE, stat=stat)
            case GetDataRequest(path):
                stat = self._stat_locked(path)
                if stat is None:
                    return Response(path, StoreCode.NO_NODE)
                if should_watch(request):
                    self._data_watches[path].add(session_id)
                (data,) = self._db.execute(
                    "SELECT data FROM znode WHERE path = ?", (path,)
                ).fetchone()
                return Response(path, StoreCode.OK, data=data, stat=stat)
            case GetChildrenRequest(path):
                stat = self._stat_locked(path)
                if stat is None:
                    return Response(path, StoreCode.NO_NODE)
                if should_watch(request):
                    self._child_watches[path].add(session_id)
                rows = self._db.execute(
                    "SELECT path FROM znode WHERE parent = ? ORDER BY path", (path,)
                )
                children = tuple(child.rpartition("/")[2] for (child,) in rows)
                return Response(path, StoreCode.OK, stat=stat, children=children)
            case MultiRequest(ops):
                return self._multi_locked(session_id, ops)
            case CreateRequest() | DeleteRequest() | SetDataRequest():
                try:
                    return self._write_locked(session_id, request, self._next_zxid())
                except StoreError as e:
                    return Response(request.path, e.code)
            case _:
                assert_never(request)

    def _multi_locked(self, session_id: int, ops: Sequence[ZkOp]) -> Response:
        """All operations share one zxid; after a failure those before it report OK, those behind
        it RUNTIME_INCONSISTENCY, and none has happened."""
        results: list[Response] = []
        zxid = self._next_zxid()
        fired = len(self._fired)
        self._db.execute("SAVEPOINT multi")
        for op in ops:
            try:
                if isinstance(op, CheckOp):
                    self._check_version_locked(op.path, op.version)
                    results.append(Response(op.path, StoreCode.OK))
                else:
                    results.append(self._write_locked(session_id, op, zxid))
            except StoreError as e:
                self._db.execute("ROLLBACK TO multi")
                self._db.execute("RELEASE multi")
                del self._fired[fired:]
                done = [Response(r.path, StoreCode.OK) for r in results]
                behind = ops[len(results) + 1 :]
                skipped = [Response(o.path, StoreCode.RUNTIME_INCONSISTENCY) for o in behind]
                failed = Response(op.path, e.code)
                return Response(op.path, e.code, results=(*done, failed, *skipped))
        self._db.execute("RELEASE multi")
        return Response(ops[0].path if ops else "/", StoreCode.OK, results=tuple(results))

    def _write_locked(self, session_id: int, request: _Write, zxid: int) -> Response:
        match request:
            case CreateRequest():
                return self._create_locked(session_id, request, zxid)
            case DeleteRequest(path, version):
                stat = self._check_version_locked(path, version)
                if stat.num_children:
                    raise StoreError(StoreCode.NOT_EMPTY, path)
                self._delete_locked(path, zxid)
                return Response(path, StoreCode.OK)
            case SetDataRequest(path, data, version):
                self._check_version_locked(path, version)
                self._db.execute(
                    "UPDATE znode SET data = ?, version = version + 1, mzxid = ?, mtime = ?"
                    " WHERE path = ?",
                    (data, zxid, self._time.milliseconds(), path),
                )
                self._fired.append(WatchedEvent(EventType.NODE_DATA_CHANGED, path))
                return Response(path, StoreCode.OK, stat=self._stat_locked(path))

    def _create_locked(self, session_id: int, request: CreateRequest, zxid: int) -> Response:
        path, mode = request.path, request.create_mode
        _validate_path(path, sequential=mode.sequential)
        parent = path.rpartition("/")[0] or "/"
        row = self._db.execute(
            "SELECT created, ephemeral_owner FROM znode WHERE path = ?", (parent,)
        ).fetchone()
        if row is None:
            raise StoreError(StoreCode.NO_NODE, path)
        created, parent_owner = row
        if parent_owner:
            raise StoreError(StoreCode.NO_CHILDREN_FOR_EPHEMERALS, path)
        if mode.sequential:
            path = f"{path}{created:010d}"
        owner = session_id if mode.ephemeral else 0
        now = self._time.milliseconds()
        try:
            self._db.execute(
                "INSERT INTO znode (path, parent, data, czxid, mzxid, pzxid, ctime, mtime,"
                " ephemeral_owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (path, parent, request.data, zxid, zxid, zxid, now, now, owner),
            )
        except sqlite3.IntegrityError:
            raise StoreError(StoreCode.NODE_EXISTS, path) from None
        self._db.execute(
            "UPDATE znode SET created = created + 1, pzxid = ? WHERE path = ?", (zxid, parent)
        )
        self._fired.append(WatchedEvent(EventType.NODE_CREATED, path))
        self._fired.append(WatchedEvent(EventType.NODE_CHILDREN_CHANGED, parent))
        return Response(request.path, StoreCode.OK, name=path, stat=self._stat_locked(path))

    def _delete_locked(self, path: str, zxid: int) -> None:
        parent = path.rpartition("/")[0] or "/"
        self._db.execute("DELETE FROM znode WHERE path = ?", (path,))
        self._db.execute("UPDATE znode SET pzxid = ? WHERE path = ?", (zxid, parent))
        self._fired.append(WatchedEvent(EventType.NODE_DELETED, path))
        self._fired.append(WatchedEvent(EventType.NODE_CHILDREN_CHANGED, parent))

    def _delete_ephemerals_locked(self, owner: int) -> None:
        rows = self._db.execute(
            "SELECT path FROM znode WHERE ephemeral_owner = ? ORDER BY path", (owner,)
        ).fetchall()
        if rows:
            zxid = self._next_zxid()
            for (path,) in rows:
                self._delete_locked(path, zxid)

    def _check_version_locked(self, path: str, version: int) -> Stat:
        stat = self._stat_locked(path)
        if stat is None:
            raise StoreError(StoreCode.NO_NODE, path)
        if version not in (MATCH_ANY_VERSION, stat.version):
            raise StoreError(StoreCode.BAD_VERSION, path)
        return stat

    def _stat_locked(self, path: str) -> Stat | None:
        row = self._db.execute(
            f"SELECT {_STAT_COLUMNS} FROM znode WHERE path = ?", (path,)
        ).fetchone()
        if row is None:
            return None
        czxid, mzxid, pzxid, ctime, mtime, version, created, owner, length, num_children = row
        return Stat(
            czxid=czxid,
            mzxid=mzxid,
            pzxid=pzxid,
            ctime=ctime,
            mtime=mtime,
            version=version,
            # Changes of the children: every creation, and every deletion since (created - present).
            cversion=2 * created - num_children,
            ephemeral_owner=owner,
            data_length=length or 0,
            num_children=num_children,
        )

    def _next_zxid(self) -> int:
        self._zxid += 1
        return self._zxid

    def _trigger_locked(self, event: WatchedEvent) -> None:
        """Watches fire once: each is gone when its event is queued."""
        watchers: set[int] = set()
        if event.type is not EventType.NODE_CHILDREN_CHANGED:
            watchers |= self._data_watches.pop(event.path, set())
        if event.type in (EventType.NODE_CHILDREN_CHANGED, EventType.NODE_DELETED):
            watchers |= self._child_watches.pop(event.path, set())
        for session_id in sorted(watchers):
            deliver = self._sessions.get(session_id)
            if deliver is not None:
                deliver(event)


def _open_in_memory(image: bytes | None) -> sqlite3.Connection:
    db = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    if image is not None:
        db.deserialize(image)
    else:
        db.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
    return db


def _validate_path(path: str, *, sequential: bool) -> None:
    body = path + "0" if sequential else path
    segments = body.split("/")
    if (
        not path.startswith("/")
        or len(body) < 2
        or any(segment in ("", ".", "..") for segment in segments[1:])
        or "\0" in path
    ):
        raise StoreError(StoreCode.BAD_ARGUMENTS, path)


def _fsync_directory(directory: Path) -> None:
    """Make the new file's name as durable as its content."""
    fd = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
