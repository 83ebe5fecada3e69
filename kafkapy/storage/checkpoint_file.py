"""Small text files that are replaced as a whole."""

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from kafkapy.common.errors import KafkaStorageError
from kafkapy.storage.file_system import FileSystem, atomic_write
from kafkapy.storage.log_dir_failure_channel import LogDirFailureChannel

T = TypeVar("T")


class CheckpointFile(Generic[T]):
    """A version, a count and one line per entry, written atomically. Not thread-safe.

    A crash leaves either the old or the new content.

    Ports: org.apache.kafka.server.common.CheckpointFile
    """

    def __init__(
        self,
        path: str,
        *,
        version: int,
        to_line: Callable[[T], str],
        from_line: Callable[[str], T],
        file_system: FileSystem,
    ) -> None:
        self.path = path
        self._version = version
        self._to_line = to_line
        self._from_line = from_line
        self._file_system = file_system

    def write(self, entries: Iterable[T]) -> None:
        lines = [self._to_line(entry) for entry in entries]
        text = "\n".join((str(self._version), str(len(lines)), *lines)) + "\n"
        atomic_write(self._file_system, self.path, text.encode())

    def read(self) -> list[T]:
        """Nothing if there is no file, or an empty one, as Kafka makes it before the first write.

        OSError if it is malformed, for then the disk is not to be trusted.
        """
        try:
            text = self._file_system.read_bytes(self.path).decode()
        except FileNotFoundError:
            return []
        except UnicodeDecodeError as e:
            raise OSError(f"Malformed checkpoint file {self.path}: {e}") from e
        lines = text.splitlines()
        if not lines:
            return []
        try:
            version, count = int(lines[0]), int(lines[1])
            if version != self._version:
                raise ValueError(f"version {version}, expected {self._version}")
            entries = [self._from_line(line) for line in lines[2:]]
            if len(entries) != count:
                raise ValueError(f"{len(entries)} entries, expected {count}")
        except (ValueError, IndexError) as e:
            raise OSError(f"Malformed checkpoint file {self.path}: {e}") from e
        return entries


class CheckpointFileWithFailureHandler(Generic[T]):
    """A checkpoint file whose errors take its log directory offline. Not thread-safe.

    Ports: org.apache.kafka.storage.internals.checkpoint.CheckpointFileWithFailureHandler
    """

    def __init__(
        self,
        checkpoint: CheckpointFile[T],
        *,
        log_dir: str,
        log_dir_failure_channel: LogDirFailureChannel,
    ) -> None:
        self._checkpoint = checkpoint
        self._log_dir = log_dir
        self._log_dir_failure_channel = log_dir_failure_channel

    @property
    def path(self) -> str:
        return self._checkpoint.path

    def write(self, entries: Iterable[T]) -> None:
        try:
            self._checkpoint.write(entries)
        except OSError as e:
            raise self._fail("writing", e) from e

    def write_if_dir_exists(self, entries: Iterable[T]) -> None:
        """No error if the directory has been renamed for deletion meanwhile."""
        try:
            self._checkpoint.write(entries)
        except FileNotFoundError:
            return
        except OSError as e:
            raise self._fail("writing", e) from e

    def read(self) -> list[T]:
        try:
            return self._checkpoint.read()
        except OSError as e:
            raise self._fail("reading", e) from e

    def _fail(self, doing: str, error: OSError) -> KafkaStorageError:
        message = f"Error while {doing} the checkpoint file {self.path}"
        self._log_dir_failure_channel.maybe_add_offline_log_dir(self._log_dir, message, error)
        return KafkaStorageError(f"{message}: {error}")
