"""What differs between operating systems in network I/O, each with a portable form.

Linux has epoll, eventfd and a sendfile that reports partial progress. Everywhere else (and in
tests, which force it on Linux too) the same things are done by `selectors`, a socket pair, and
reading and sending.
"""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import socket
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

READ = 0x001
WRITE = 0x004
# Reported without being asked for: the peer is gone in both directions, or the socket failed.
HANG_UP = 0x018

_COPY_BYTES = 128 * 1024


class Poller(Protocol):
    """Tells which file descriptors are ready, level-triggered. For one thread."""

    def register(self, fd: int, events: int) -> None: ...

    def modify(self, fd: int, events: int) -> None: ...

    def unregister(self, fd: int) -> None: ...

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        """(descriptor, events) pairs; `timeout` in seconds."""
        ...

    def close(self) -> None: ...


class Waker(Protocol):
    """Makes a poller return. `wake` may be called from any thread, also after `close`."""

    def register_with(self, poller: Poller) -> None: ...

    def fileno(self) -> int: ...

    def wake(self) -> None: ...

    def drain(self) -> None:
        """Called by the polling thread when the waker is readable."""
        ...

    def close(self) -> None: ...


class SelectorsPoller:
    """A poller over `selectors`: kqueue on macOS, poll or select elsewhere."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def register(self, fd: int, events: int) -> None:
        self._selector.register(fd, self._to_selectors(events))

    def modify(self, fd: int, events: int) -> None:
        self._selector.modify(fd, self._to_selectors(events))

    def unregister(self, fd: int) -> None:
        self._selector.unregister(fd)

    def poll(self, timeout: float) -> list[tuple[int, int]]:
        ready = []
        for key, events in self._selector.select(timeout):
            translated = READ if events & selectors.EVENT_READ else 0
            if events & selectors.EVENT_WRITE:
                translated |= WRITE
            ready.append((key.fd, translated))
        return ready

    def close(self) -> None:
        self._selector.close()

    @staticmethod
    def _to_selectors(events: int) -> int:
        translated = selectors.EVENT_READ if events & READ else 0
        return translated | (selectors.EVENT_WRITE if events & WRITE else 0)


class SocketPairWaker:
    """A waker that is a byte through a socket pair."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._closed = False  # guarded by self._lock
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def register_with(self, poller: Poller) -> None:
        poller.register(self.fileno(), READ)

    def fileno(self) -> int:
        return self._reader.fileno()

    def wake(self) -> None:
        # The lock keeps a wake from reaching whoever is given the descriptor after close.
        with self._lock, contextlib.suppress(BlockingIOError):
            if not self._closed:
                # A full pair wakes as well as one more byte would.
                self._writer.send(b"\0")

    def drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while self._reader.recv(4096):
                pass

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._reader.close()
            self._writer.close()


def send_file_by_copy(out: socket.socket, in_fd: int, offset: int, count: int) -> int:
    """The number of bytes sent: 0 at the end of the file. Raises BlockingIOError."""
    data = os.pread(in_fd, min(count, _COPY_BYTES), offset)
    return out.send(data) if data else 0


def has_peer_closed_by_peek(fd: int) -> bool:
    """Whether a connection's peer has closed its side; not noticed behind unread bytes."""
    with socket.socket(fileno=os.dup(fd)) as sock:
        try:
            return not sock.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            return True


@dataclass(frozen=True, slots=True)
class IoPlatform:
    """One way of doing network I/O."""

    new_poller: Callable[[], Poller]
    new_waker: Callable[[], Waker]
    send_file: Callable[[socket.socket, int, int, int], int]
    has_peer_closed: Callable[[int], bool] = has_peer_closed_by_peek


PORTABLE = IoPlatform(SelectorsPoller, SocketPairWaker, send_file_by_copy)

if sys.platform == "linux":

    class EventFdWaker:
        """A waker that is an edge-triggered eventfd: it never has to be read."""

        def __init__(self) -> None:
            self._lock = threading.Lock()
            self._fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)  # guarded by self._lock

        def register_with(self, poller: Poller) -> None:
            poller.register(self._fd, READ | select.EPOLLET)

        def fileno(self) -> int:
            return self._fd

        def wake(self) -> None:
            # The lock keeps a wake from reaching whoever is given the descriptor after close.
            with self._lock:
                if self._fd >= 0:
                    os.eventfd_write(self._fd, 1)

        def drain(self) -> None:
            """Nothing to do: the next write is a new edge."""

        def close(self) -> None:
            with self._lock:
                if self._fd >= 0:
                    os.close(self._fd)
                    self._fd = -1

    def _send_file(out: socket.socket, in_fd: int, offset: int, count: int) -> int:
        return os.sendfile(out.fileno(), in_fd, offset, count)

    def _has_peer_closed(fd: int) -> bool:
        poll = select.poll()
        poll.register(fd, select.POLLRDHUP)
        return bool(poll.poll(0))

    NATIVE = IoPlatform(select.epoll, EventFdWaker, _send_file, _has_peer_closed)
else:
    NATIVE = PORTABLE
