"""The server's end of a TLS connection, played on the thread of the test."""

from __future__ import annotations

import contextlib
import socket
import ssl
from types import TracebackType

from tests.helpers.certificates import Identity


def server_context(identity: Identity, trusted: str | None = None) -> ssl.SSLContext:
    """A server's context; with `trusted`, a file of certificates, clients must have one too."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(identity.certificate, identity.key)
    if trusted is not None:
        context.load_verify_locations(trusted)
        context.verify_mode = ssl.CERT_REQUIRED
    return context


class TlsPeer:
    """A server on one end of a socket pair; it moves at most `piece_bytes` at a time."""

    def __init__(self, context: ssl.SSLContext, *, piece_bytes: int = 1 << 20) -> None:
        self.client_end, self._socket = socket.socketpair()
        self.client_end.setblocking(False)
        self._socket.setblocking(False)
        self._piece_bytes = piece_bytes
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._unsent = b""
        self.received = bytearray()

    def __enter__(self) -> TlsPeer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.client_end.close()
        self._socket.close()

    def hang_up(self) -> None:
        self._socket.close()

    def take_over(self, connection: socket.socket) -> None:
        """Play the server there instead."""
        self._socket.close()
        self._socket = connection
        self._socket.setblocking(False)

    def tls_alert(self) -> bytes:
        """What TLS has to say after an error."""
        return self._outgoing.read()

    def send_raw(self, data: bytes) -> None:
        self._socket.sendall(data)

    def step(self, to_send: bytes = b"") -> None:
        """Move one piece in each direction, and go on with the handshake or read."""
        with contextlib.suppress(BlockingIOError):
            self._incoming.write(self._socket.recv(self._piece_bytes))
        try:
            if to_send:
                self.tls.write(to_send)
            # Reading shakes hands first if need be.
            while data := self.tls.read(1 << 16):
                self.received += data
        except ssl.SSLWantReadError:
            pass
        self._unsent += self._outgoing.read()
        with contextlib.suppress(BlockingIOError):
            self._unsent = self._unsent[self._socket.send(self._unsent[: self._piece_bytes]) :]
