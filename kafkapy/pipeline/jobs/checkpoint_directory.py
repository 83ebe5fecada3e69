"""Where a pipeline keeps what it must know after a restart.

<checkpoint>/.lock                  held by the one run there may be, on a local disk
<checkpoint>/<query>/               Spark's own checkpoint of that query
<checkpoint>/starting/<source>.json the offsets at which every query of the source begins
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Self
from urllib.parse import urlsplit

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from kafkapy.pipeline.jobs.failure_cause import failure_cause
from kafkapy.pipeline.jobs.pipeline_config import STARTING
from kafkapy.pipeline.jobs.topic_directory import Offsets
from kafkapy.pipeline.pipeline_errors import PipelineError


class CheckpointDirectory:
    """A pipeline's checkpoints, on any file system that Spark knows. A context manager: within it
    no other run of the pipeline on this machine is let in. For one thread.
    """

    def __init__(self, location: str) -> None:
        # constant after construction
        self._location = location
        self._lock: IO[str] | None = None

    def __enter__(self) -> Self:
        local = self._local()
        if local is None:
            return self
        try:
            local.mkdir(parents=True, exist_ok=True)
            lock = open(local / ".lock", "a+")
        except OSError as e:
            raise PipelineError(f"checkpoint {self._location}: {e.strerror}") from e
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.seek(0)
            holder = lock.read().strip() or "unknown"
            lock.close()
            reason = f"another run of the pipeline has it, process {holder}"
            raise PipelineError(f"checkpoint {self._location}: {reason}") from None
        lock.truncate(0)
        lock.write(str(os.getpid()))
        lock.flush()
        self._lock = lock
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def of_query(self, name: str) -> str:
        return f"{self._location}/{name}"

    def starting_offsets(self, spark: SparkSession, source: str) -> Offsets | None:
        """What was kept, if something was."""
        with self._told():
            path = self._hadoop_path(spark, source)
            system = path.getFileSystem(spark._jsc.hadoopConfiguration())
            if not system.exists(path):
                return None
            stream = system.open(path)
            try:
                # Scala's and Java's own readers take a stream; py4j hands over bytes in one call.
                text = bytes(stream.readAllBytes()).decode()
            finally:
                stream.close()
        try:
            offsets: Offsets = json.loads(text)
        except ValueError as e:
            raise PipelineError(f"checkpoint {path.toString()}: not JSON: {e}") from e
        return offsets

    def keep_starting_offsets(self, spark: SparkSession, source: str, offsets: Offsets) -> None:
        """All of it or nothing is there afterwards: it is renamed into place."""
        with self._told():
            path = self._hadoop_path(spark, source)
            system = path.getFileSystem(spark._jsc.hadoopConfiguration())
            written = path.suffix(".new")
            stream = system.create(written, True)
            try:
                stream.write(bytearray(json.dumps(offsets, sort_keys=True).encode()))
            finally:
                stream.close()
            if not system.rename(written, path):
                raise PipelineError(f"checkpoint {path.toString()}: cannot be written")

    @contextmanager
    def _told(self) -> Iterator[None]:
        """What Java says of a file system that it does not know, or that does not answer."""
        try:
            yield
        except (PySparkException, Py4JError) as e:
            raise PipelineError(f"checkpoint {self._location}: {failure_cause(e)}") from e

    def _local(self) -> Path | None:
        parts = urlsplit(self._location)
        return Path(parts.path) if parts.scheme in ("", "file") else None

    def _hadoop_path(self, spark: SparkSession, source: str):  # type: ignore[no-untyped-def]
        jvm = spark._jvm
        assert jvm is not None
        return jvm.org.apache.hadoop.fs.Path(f"{self._location}/{STARTING}/{source}.json")
