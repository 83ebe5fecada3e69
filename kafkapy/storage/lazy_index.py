"""An index that is opened when it is first needed."""

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from kafkapy.storage.abstract_index import AbstractIndex
from kafkapy.storage.file_system import FileSystem

IndexT = TypeVar("IndexT", bound=AbstractIndex)


class LazyIndex(Generic[IndexT]):
    """Stands for an index file; maps it at the first `get`. Thread-safe.

    Most segments of a broker are never read, so opening their indexes at start-up would be wasted.

    Ports: org.apache.kafka.storage.internals.log.LazyIndex
    """

    __slots__ = ("_file_system", "_index", "_lock", "_open", "_path")

    def __init__(self, path: str, file_system: FileSystem, open: Callable[[str], IndexT]) -> None:
        self._open = open  # constant after construction
        self._file_system = file_system
        self._lock = threading.Lock()
        # guarded by self._lock
        self._path = path
        self._index: IndexT | None = None

    @property
    def path(self) -> str:
        index = self._index
        return self._path if index is None else index.path

    @property
    def loaded(self) -> IndexT | None:
        """The index if somebody has needed it."""
        return self._index

    def get(self) -> IndexT:
        index = self._index
        if index is None:
            with self._lock:
                index = self._index
                if index is None:
                    index = self._index = self._open(self._path)
        return index

    def update_parent_dir(self, directory: str) -> None:
        with self._lock:
            if self._index is not None:
                self._index.update_parent_dir(directory)
            else:
                self._path = os.path.join(directory, os.path.basename(self._path))

    def rename_to(self, path: str) -> None:
        with self._lock:
            if self._index is not None:
                self._index.rename_to(path)
                return
            if self._file_system.exists(self._path):
                self._file_system.rename(self._path, path)
            self._path = path

    def delete_if_exists(self) -> bool:
        with self._lock:
            if self._index is not None:
                return self._index.delete_if_exists()
            return self._file_system.unlink_if_exists(self._path)

    def close(self) -> None:
        if self._index is not None:
            self._index.close()

    def close_handler(self) -> None:
        if self._index is not None:
            self._index.close_handler()
