"""Calls between a test and the process of its broker, over an inherited socket pair."""

from __future__ import annotations

import logging
import os
import pickle
import socket
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from itertools import count
from multiprocessing.connection import Connection
from typing import Any

from kafkapy.common.errors import KafkaError

log = logging.getLogger(__name__)

_CALL, _RESULT, _ERROR = range(3)


class ControlChannel:
    """One end of a connection on which each side may call functions of the other. Thread-safe.

    Every call that comes in runs on a thread of its own, so that one that waits, or calls back,
    holds up nobody.
    """

    def __init__(
        self,
        connection: Connection,
        functions: Mapping[str, Callable[..., object]],
        *,
        on_end: Callable[[], None] | None = None,
    ) -> None:
        """`on_end` is called, once, when the other side has gone."""
        # constant after construction
        self._connection = connection
        self._functions = functions
        self._on_end = on_end
        self._numbers = count(1)
        self._send_lock = threading.Lock()
        self._lock = threading.Lock()
        # guarded by self._lock
        self._pending: dict[int, Future[object]] = {}
        self._has_ended = False
        self._reader = threading.Thread(target=self._read, name="control-channel", daemon=True)
        self._reader.start()

    def call(self, name: str, *arguments: object) -> Any:
        """What the other side's function returns or raises; KafkaError if it has gone."""
        number = next(self._numbers)
        future: Future[object] = Future()
        with self._lock:
            if self._has_ended:
                raise KafkaError("the broker's process has ended")
            self._pending[number] = future
        try:
            self._send((_CALL, number, name, arguments))
        except OSError as e:
            # The reader will notice as well, but later.
            raise KafkaError("the broker's process has ended") from e
        return future.result()

    def close(self) -> None:
        """End the connection; the other side notices. Idempotent."""
        with self._send_lock:
            if not self._connection.closed:
                # The reader may be reading: it ends by what it reads, then closes.
                _shut_down(self._connection)
        if self._reader is not threading.current_thread():
            self._reader.join()

    def _read(self) -> None:
        try:
            while True:
                kind, number, *rest = self._connection.recv()
                if kind == _CALL:
                    threading.Thread(
                        target=self._serve,
                        args=(number, *rest),
                        name=f"control-{rest[0]}",
                        daemon=True,
                    ).start()
                    continue
                with self._lock:
                    future = self._pending.pop(number)
                if kind == _RESULT:
                    future.set_result(rest[0])
                else:
                    future.set_exception(rest[0])
        except (EOFError, OSError):
            log.debug("The control channel has ended")
        finally:
            self._end()

    def _end(self) -> None:
        with self._lock:
            self._has_ended = True
            pending, self._pending = self._pending, {}
        with self._send_lock:
            self._connection.close()
        for future in pending.values():
            future.set_exception(KafkaError("the broker's process has ended"))
        if self._on_end is not None:
            self._on_end()

    def _serve(self, number: int, name: str, arguments: tuple[object, ...]) -> None:
        try:
            answer: tuple[object, ...] = (_RESULT, number, self._functions[name](*arguments))
        except BaseException as e:  # pytest.fail() is no Exception, and the other side waits
            answer = (_ERROR, number, _portable(e))
        try:
            self._send(answer)
        except (OSError, KafkaError):
            log.debug("Nobody waits for the answer to %s any more", name)

    def _send(self, message: object) -> None:
        with self._send_lock:
            if self._connection.closed:
                raise KafkaError("the broker's process has ended")
            self._connection.send(message)


def _portable(error: BaseException) -> Exception:
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return KafkaError(repr(error))
    return error if isinstance(error, Exception) else KafkaError(repr(error))


def _shut_down(connection: Connection) -> None:
    with socket.socket(fileno=os.dup(connection.fileno())) as sock:
        try:
            sock.shutdown(socket.SHUT_RDWR)
        except OSError as e:
            log.debug("The control channel was closed already: %s", e)
