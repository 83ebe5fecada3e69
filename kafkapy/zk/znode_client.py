from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from typing import TypeVar

from kafkapy.zk.metadata_store import (
    MATCH_ANY_VERSION,
    UNKNOWN_VERSION,
    CreateMode,
    CreateRequest,
    DeleteRequest,
    ExistsRequest,
    GetChildrenRequest,
    GetDataRequest,
    Response,
    SetDataRequest,
    Stat,
    StoreCode,
)
from kafkapy.zk.zk_request_sender import ZkRequestSender

log = logging.getLogger(__name__)

_Key = TypeVar("_Key")
UpdateChecker = Callable[["ZnodeClient", str, bytes], tuple[bool, int]]


class ZnodeClient:
    """Reading and writing znodes whatever they mean. Thread-safe.

    Ports: kafka.zk.KafkaZkClient (its operations on plain paths)
    """

    def __init__(self, sender: ZkRequestSender) -> None:
        self._sender = sender  # constant after construction

    def get(self, path: str) -> Response:
        return self._sender.send(GetDataRequest(path))

    def get_all(
        self, keys: Collection[_Key], path: Callable[[_Key], str]
    ) -> list[tuple[_Key, Response]]:
        """The data of one znode per key, all asked for at once."""
        responses = self._sender.send_all([GetDataRequest(path(key)) for key in keys])
        return list(zip(keys, responses, strict=True))

    def path_exists(self, path: str) -> bool:
        response = self._sender.send(ExistsRequest(path))
        if response.result_code is StoreCode.NO_NODE:
            return False
        response.maybe_raise()
        return True

    def get_data_and_version(self, path: str) -> tuple[bytes | None, int]:
        """UNKNOWN_VERSION when there is no such znode."""
        data, stat = self.get_data_and_stat(path)
        return data, stat.version if stat is not None else UNKNOWN_VERSION

    def get_data_and_stat(self, path: str) -> tuple[bytes | None, Stat | None]:
        response = self.get(path)
        if response.result_code is StoreCode.NO_NODE:
            return None, None
        return response.data, response.stat_or_raise()

    def get_children(self, path: str, *, register_watch: bool = True) -> tuple[str, ...]:
        """Names, none when there is no such znode; sets the watch of a registered child handler."""
        response = self._sender.send(GetChildrenRequest(path, register_watch))
        if response.result_code is StoreCode.NO_NODE:
            return ()
        response.maybe_raise()
        return response.children

    def conditional_update_path(
        self, path: str, data: bytes, expect_version: int, checker: UpdateChecker | None = None
    ) -> tuple[bool, int]:
        """Whether it was written, and the new version (UNKNOWN_VERSION if not).

        `checker` has the last word on a version mismatch: a lost answer makes the repeated write
        fail although the first one succeeded.
        """
        response = self._sender.send(SetDataRequest(path, data, expect_version))
        match response.result_code:
            case StoreCode.OK:
                return True, response.stat_or_raise().version
            case StoreCode.BAD_VERSION if checker is not None:
                return checker(self, path, data)
            case StoreCode.BAD_VERSION | StoreCode.NO_NODE:
                log.debug("%s was not updated: %s", path, response.result_code.name)
                return False, UNKNOWN_VERSION
            case _:
                raise response.exception

    def create_all(self, paths: Collection[str]) -> None:
        """Make sure that persistent znodes, and those above them, exist."""
        ancestors: dict[str, None] = {}
        for path in paths:
            segments = path.split("/")
            ancestors.update(("/".join(segments[:i]), None) for i in range(2, len(segments) + 1))
        for response in self._sender.send_all([CreateRequest(path) for path in ancestors]):
            if response.result_code is not StoreCode.NODE_EXISTS:
                response.maybe_raise()

    def make_sure_persistent_path_exists(self, path: str) -> None:
        self.create_recursive(path, throw_if_path_exists=False)

    def create_recursive(
        self, path: str, data: bytes | None = None, *, throw_if_path_exists: bool = True
    ) -> None:
        """Create a persistent znode and those missing above it, which get no data."""
        response = self._sender.send(CreateRequest(path, data))
        if response.result_code is StoreCode.NO_NODE:
            parent = path.rpartition("/")[0]
            if not parent:
                raise response.exception
            self.create_recursive(parent, throw_if_path_exists=False)
            response = self._sender.send(CreateRequest(path, data))
        if response.result_code is not StoreCode.NODE_EXISTS or throw_if_path_exists:
            response.maybe_raise()

    def create_sequential_persistent_path(self, path: str, data: bytes) -> str:
        """The path made, with its number."""
        request = CreateRequest(path, data, CreateMode.PERSISTENT_SEQUENTIAL)
        response = self._sender.send(request)
        response.maybe_raise()
        return response.name or path

    def delete_path(self, path: str, *, recursive_delete: bool = True) -> bool:
        """False when there was no such znode."""
        if recursive_delete:
            return self.delete_recursive(path)
        response = self._sender.send(DeleteRequest(path))
        if response.result_code is StoreCode.NO_NODE:
            return False
        response.maybe_raise()
        return True

    def delete_recursive(
        self, path: str, expected_controller_epoch_zk_version: int = MATCH_ANY_VERSION
    ) -> bool:
        """Delete a znode and all below it, level by level in one go; False when there was none."""
        paths = [path]
        level = [path]
        while level:
            requests = [GetChildrenRequest(node, register_watch=False) for node in level]
            responses = self._sender.send_all(requests)
            if level[0] == path and responses[0].result_code is StoreCode.NO_NODE:
                return False
            level = [f"{r.path}/{child}" for r in responses for child in r.children]
            paths += level
        deletes = [DeleteRequest(node) for node in reversed(paths)]
        for response in self._sender.send_all(deletes, expected_controller_epoch_zk_version):
            if response.result_code is not StoreCode.NO_NODE:
                response.maybe_raise()
        return True
