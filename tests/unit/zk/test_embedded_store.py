"""What an EmbeddedStore does beyond every MetadataStore: one file that outlives the process."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.errors import KafkaStorageError
from kafkapy.zk.embedded_store import EMBEDDED_STORE_FILE, EmbeddedStore
from kafkapy.zk.metadata_store import (
    CheckOp,
    CreateMode,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    MultiRequest,
    SetDataRequest,
    StoreCode,
    ZkOp,
)
from kafkapy.zk.znode_tree import ZnodeTree
from tests.helpers.mock_time import MockTime
from tests.unit.zk.handlers import RecordingChangeHandler, RecordingStateHandler

# Writes znodes without end, naming each on standard output once it is acknowledged.
_WRITER = """
import sys
from kafkapy.utils.time import SystemTime
from kafkapy.zk.embedded_store import EmbeddedStore
from kafkapy.zk.metadata_store import CreateMode, CreateRequest

store = EmbeddedStore(sys.argv[1], SystemTime())
store.handle_requests([CreateRequest("/e", b"", CreateMode.EPHEMERAL)])
i = 0
while True:
    response = store.handle_requests([CreateRequest(f"/n{i}", str(i).encode())])[0]
    print(response.name, flush=True)
    i += 1
"""

# Runs into the limit on the size of files, as on a full disk, and then has room again.
_FULL_DISK = """
import resource, sys
from kafkapy.common.errors import KafkaStorageError
from kafkapy.utils.time import SystemTime
from kafkapy.zk.embedded_store import EmbeddedStore
from kafkapy.zk.metadata_store import CreateRequest, GetDataRequest

store = EmbeddedStore(sys.argv[1], SystemTime())
store.handle_requests([CreateRequest("/before", b"x")])
soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
try:
    store.handle_requests([CreateRequest("/big", bytes(1_000_000))])
except KafkaStorageError as e:
    print("refused")
resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
print(store.handle_requests([GetDataRequest("/big")])[0].result_code.name)
print(store.handle_requests([CreateRequest("/after")])[0].result_code.name)
store.close()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / EMBEDDED_STORE_FILE


def exists(store: EmbeddedStore, path: str) -> bool:
    return store.handle_requests([ExistsRequest(path)])[0].ok


def test_tree_outlives_the_store(path: Path, time: MockTime) -> None:
    store = EmbeddedStore(path, time)
    store.handle_requests([CreateRequest("/a", None), CreateRequest("/a/b", b"x")])
    written = store.handle_requests([SetDataRequest("/a/b", b"y")])[0].stat_or_raise()
    store.close()

    reopened = EmbeddedStore(path, time)
    null, read = reopened.handle_requests([GetDataRequest("/a"), GetDataRequest("/a/b")])
    later = reopened.handle_requests([CreateRequest("/c")])[0].stat_or_raise()
    reopened.close()

    assert null.data is None
    assert (read.data, read.stat) == (b"y", written)
    assert later.czxid > written.mzxid


def test_ephemerals_end_with_the_session_and_its_id_is_not_used_again(
    path: Path, time: MockTime
) -> None:
    store = EmbeddedStore(path, time)
    store.handle_requests([CreateRequest("/e", b"", CreateMode.EPHEMERAL)])
    first_session_id = store.session_id
    store.close()

    reopened = EmbeddedStore(path, time)
    still_there = exists(reopened, "/e")
    reopened.close()

    assert not still_there
    assert reopened.session_id > first_session_id


def test_acknowledged_writes_survive_kill(path: Path, time: MockTime) -> None:
    for _ in range(3):
        path.unlink(missing_ok=True)
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(path)], stdout=subprocess.PIPE, text=True
        )
        assert writer.stdout is not None
        with writer.stdout:
            acknowledged = [writer.stdout.readline().strip() for _ in range(20)]
            writer.kill()
            acknowledged += writer.stdout.read().split("\n")[:-1]
        writer.wait()

        store = EmbeddedStore(path, time)
        missing = [name for name in acknowledged if not exists(store, name)]
        ephemeral = exists(store, "/e")
        store.close()

        assert missing == []
        assert not ephemeral


def test_write_that_does_not_fit_is_refused_whole_and_the_store_lives_on(path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-c", _FULL_DISK, str(path)], capture_output=True, text=True, check=True
    )

    assert result.stdout.split() == ["refused", "NO_NODE", "OK"]


def test_second_store_on_the_same_file_is_refused(embedded: EmbeddedStore, path: Path) -> None:
    with pytest.raises(KafkaStorageError, match=f"{EMBEDDED_STORE_FILE}.*locked"):
        EmbeddedStore(path, MockTime())


def test_file_of_something_else_is_refused(path: Path, time: MockTime) -> None:
    path.write_bytes(b"not a database" * 1000)

    with pytest.raises(KafkaStorageError, match=EMBEDDED_STORE_FILE):
        EmbeddedStore(path, time)


def test_file_of_an_unknown_version_is_refused(path: Path, time: MockTime) -> None:
    database = sqlite3.connect(path)
    database.execute("PRAGMA user_version = 99")
    database.close()

    with pytest.raises(KafkaStorageError, match="version 99"):
        EmbeddedStore(path, time)


@pytest.mark.parametrize("damage", ["DROP TABLE meta", "DELETE FROM meta"])
def test_file_without_its_counters_is_refused_and_let_go(
    path: Path, time: MockTime, damage: str
) -> None:
    EmbeddedStore(path, time).close()
    with closing(sqlite3.connect(path)) as database:
        database.execute(damage)
        database.commit()

    with pytest.raises(KafkaStorageError, match=EMBEDDED_STORE_FILE):
        EmbeddedStore(path, time)

    with closing(sqlite3.connect(path, timeout=0)) as database:
        database.execute("BEGIN EXCLUSIVE")


def test_file_whose_pages_are_damaged_is_refused(path: Path, time: MockTime) -> None:
    EmbeddedStore(path, time).close()
    first_page = path.read_bytes()[:4096]
    path.write_bytes(first_page + b"\xa5" * (path.stat().st_size - len(first_page)))

    with pytest.raises(KafkaStorageError, match=f"{EMBEDDED_STORE_FILE}.*malformed"):
        EmbeddedStore(path, time)


def test_missing_directory_is_refused(tmp_path: Path, time: MockTime) -> None:
    with pytest.raises(KafkaStorageError, match="nowhere"):
        EmbeddedStore(tmp_path / "nowhere" / "x.sqlite", time)


@pytest.mark.parametrize("bad", ["", "a", "/", "//", "/a/", "/a//b", "/a/./b", "/..", "/a\0"])
def test_malformed_path_is_refused(embedded: EmbeddedStore, bad: str) -> None:
    response = embedded.handle_requests([CreateRequest(bad)])[0]

    assert response.result_code in (StoreCode.BAD_ARGUMENTS, StoreCode.NODE_EXISTS)


def test_expired_session_loses_ephemerals_and_watches_between_the_callbacks(
    embedded: EmbeddedStore,
) -> None:
    state, handler = RecordingStateHandler(), RecordingChangeHandler("/a")
    embedded.register_state_change_handler(state)
    embedded.register_znode_change_handler(handler)
    embedded.handle_requests([CreateRequest("/e", b"", CreateMode.EPHEMERAL), CreateRequest("/a")])
    embedded.handle_requests([ExistsRequest("/a")])
    expired_session_id = embedded.session_id

    embedded.expire_session()
    seen = [state.next(), state.next()]
    embedded.handle_requests([SetDataRequest("/a", b"x")])
    embedded.handle_requests([GetDataRequest("/a")])
    embedded.handle_requests([SetDataRequest("/a", b"y")])

    assert seen == ["before", "after"]
    assert embedded.session_id != expired_session_id
    assert not exists(embedded, "/e")
    assert [handler.next(), *handler.pending] == ["changed"]


def test_other_sessions_keep_their_ephemerals(embedded: EmbeddedStore) -> None:
    other = embedded.new_session()
    other.handle_requests([CreateRequest("/theirs", b"", CreateMode.EPHEMERAL)])
    embedded.handle_requests([CreateRequest("/ours", b"", CreateMode.EPHEMERAL)])

    third = embedded.new_session()
    seen = exists(third, "/theirs"), exists(third, "/ours")
    other.close()
    after = exists(third, "/theirs"), exists(third, "/ours")
    third.close()

    assert seen == (True, True)
    assert after == (False, True)


_PATHS = st.sampled_from(["/a", "/b", "/a/x", "/a/y", "/b/x", "/a/x/z"])
_VERSIONS = st.sampled_from([-1, -1, 0, 1])
_OPS: st.SearchStrategy[ZkOp] = st.one_of(
    st.builds(CreateRequest, _PATHS, st.binary(max_size=3)),
    st.builds(DeleteRequest, _PATHS, _VERSIONS),
    st.builds(SetDataRequest, _PATHS, st.binary(max_size=3), _VERSIONS),
    st.builds(CheckOp, _PATHS, _VERSIONS),
)

Model = dict[str, tuple[bytes | None, int]]


def _apply(model: Model, op: ZkOp) -> bool:
    """Whether the operation is allowed; if so the model has changed."""
    has_children = any(path.startswith(f"{op.path}/") for path in model)
    parent = op.path.rpartition("/")[0]
    if isinstance(op, CreateRequest):
        if op.path in model or (parent and parent not in model):
            return False
        model[op.path] = (op.data, 0)
        return True
    if op.path not in model or op.version not in (-1, model[op.path][1]):
        return False
    if isinstance(op, DeleteRequest):
        if has_children:
            return False
        del model[op.path]
    elif isinstance(op, SetDataRequest):
        model[op.path] = (op.data, model[op.path][1] + 1)
    return True


@settings(deadline=None, derandomize=True, max_examples=40)
@given(st.lists(st.lists(_OPS, min_size=1, max_size=4), max_size=15))
def test_transactions_agree_with_a_model(
    tmp_path_factory: pytest.TempPathFactory, transactions: list[list[ZkOp]]
) -> None:
    store = EmbeddedStore(tmp_path_factory.mktemp("model") / "x.sqlite", MockTime())
    model: Model = {}
    try:
        for ops in transactions:
            attempt = dict(model)
            allowed = all(_apply(attempt, op) for op in ops)

            response = store.handle_requests([MultiRequest(tuple(ops))])[0]

            assert response.ok == allowed
            model = attempt if allowed else model
            _check(store, model)
    finally:
        store.close()


def _check(store: EmbeddedStore, model: Model) -> None:
    for path, (data, version) in model.items():
        read, listed = store.handle_requests([GetDataRequest(path), GetChildrenRequest(path)])
        assert (read.data, read.stat_or_raise().version) == (data, version)
        children = {p.rpartition("/")[2] for p in model if p.rpartition("/")[0] == path}
        assert set(listed.children) == children
        assert read.stat_or_raise().num_children == len(children)
    top = store.handle_requests([GetChildrenRequest("/")])[0]
    assert set(top.children) == {path[1:] for path in model if path.count("/") == 1}


def test_a_tree_in_memory_begins_as_another_was(time: MockTime) -> None:
    tree = ZnodeTree(None, time)
    store = EmbeddedStore(tree.path, time, tree=tree)
    store.handle_requests(
        [
            CreateRequest("/kept", b"1"),
            CreateRequest("/gone", b"", CreateMode.EPHEMERAL),
            SetDataRequest("/kept", b"2", 0),
        ]
    )
    image, zxid = tree.image(), tree.last_zxid
    store.handle_requests([SetDataRequest("/kept", b"3", 1)])
    assert tree.last_zxid > zxid
    store.close()

    again = ZnodeTree(None, time, image=image)

    assert again.last_zxid == zxid
    store = EmbeddedStore(again.path, time, tree=again)
    kept, gone = store.handle_requests([GetDataRequest("/kept"), GetDataRequest("/gone")])
    assert (kept.data, kept.stat_or_raise().version) == (b"2", 1)
    assert gone.result_code is StoreCode.NO_NODE
    store.close()
