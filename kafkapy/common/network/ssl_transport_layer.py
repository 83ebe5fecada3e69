"""TLS over a non-blocking socket."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from collections.abc import Sequence

from kafkapy.common.errors import SslAuthenticationError
from kafkapy.common.network.io_platform import READ, WRITE
from kafkapy.common.network.socket_address import SocketAddress
from kafkapy.common.network.transport_layer import Buffer

# What is encrypted, and what is taken from the socket, at once: a few records of TLS.
_CHUNK_BYTES = 64 * 1024
# What OpenSSL says when the first bytes of the peer are no record of TLS.
_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "UNEXPECTED_MESSAGE"})


class SslTransportLayer:
    """A connection's bytes, encrypted. For one thread.

    TLS itself works on memory, so the socket stays what it is and every step here is either done
    or waits for the socket. What could not be sent yet is sent before anything else, and only then
    counts as sent: until a caller has heard so it must come back with the same bytes.

    Ports: org.apache.kafka.common.network.SslTransportLayer
    """

    __slots__ = (
        "_context",
        "_incoming",
        "_is_confirmed",
        "_outgoing",
        "_peer",
        "_socket",
        "_taken",
        "_tls",
        "_unsent",
    )

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, peer: SocketAddress) -> None:
        # constant after construction
        self._socket = sock
        self._context = context
        self._peer = peer
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls: ssl.SSLObject | None = None  # made with the first step of the handshake
        # In TLS 1.3 a peer may refuse our certificate after the handshake has ended for us.
        self._is_confirmed = False
        self._unsent = memoryview(b"")  # encrypted
        self._taken = 0  # bytes of the caller's that are encrypted but not sent completely

    @property
    def has_buffered(self) -> bool:
        """Reading may give something that no poller knows of."""
        return self._incoming.pending > 0 or (self._tls is not None and self._tls.pending() > 0)

    def fileno(self) -> int:
        return self._socket.fileno()

    def handshake(self) -> int:
        """The events to wait for, 0 once the connection is encrypted.

        Raises SslAuthenticationError, which says why, and EOFError when the peer just hangs up.
        """
        tls = self._tls = self._tls or self._new_session()
        while True:
            try:
                tls.do_handshake()
            except ssl.SSLWantReadError:
                if not self._flush():
                    return WRITE
                try:
                    data = self._socket.recv(_CHUNK_BYTES)
                except BlockingIOError:
                    return READ
                if not data:
                    raise EOFError("closed by the peer in the TLS handshake") from None
                self._incoming.write(data)
            except ssl.SSLError as error:
                # The alert tells the peer as well, if it still listens.
                with contextlib.suppress(OSError):
                    self._flush()
                raise self._refusal(error) from error
            else:
                return 0 if self._flush() else WRITE

    def recv_into(self, buffer: bytearray | memoryview, /) -> int:
        tls = self._session()
        filled = 0
        with memoryview(buffer) as view:
            while filled < len(view):
                try:
                    count = tls.read(len(view) - filled, view[filled:])
                except ssl.SSLWantReadError:
                    if self._receive(is_needed=filled == 0):
                        continue
                    break
                except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                    break
                except ssl.SSLError as error:
                    if self._is_confirmed:
                        raise
                    raise self._refusal(error) from error
                if not count:
                    break
                filled += count  # type: ignore[operator]  # with a buffer it is a number
                self._is_confirmed = True
        return filled

    def send(self, buffer: Buffer, /) -> int:
        if not self._taken:
            self._taken = self._session().write(memoryview(buffer)[:_CHUNK_BYTES])
        if not self._flush():
            raise BlockingIOError
        count, self._taken = self._taken, 0
        return count

    def sendmsg(self, buffers: Sequence[Buffer], /) -> int:
        if len(buffers[0]) >= _CHUNK_BYTES:
            return self.send(buffers[0])
        gathered = bytearray()
        for buffer in buffers:
            gathered += memoryview(buffer)[: _CHUNK_BYTES - len(gathered)]
            if len(gathered) == _CHUNK_BYTES:
                break
        return self.send(gathered)

    def send_file(self, fd: int, offset: int, count: int, /) -> int:
        data = os.pread(fd, min(count, _CHUNK_BYTES), offset)
        return self.send(data) if data else 0

    def close(self) -> None:
        # Saying goodbye is a courtesy: the peer may be gone, or the socket full.
        with contextlib.suppress(OSError):
            if self._tls is not None and self._is_confirmed and not self._taken:
                try:
                    self._tls.unwrap()
                except ssl.SSLWantReadError:
                    self._flush()
        self._socket.close()

    def _new_session(self) -> ssl.SSLObject:
        try:
            return self._context.wrap_bio(
                self._incoming, self._outgoing, server_hostname=self._peer.host
            )
        except ValueError as error:
            raise SslAuthenticationError(
                f"TLS with {self._peer} failed: that is no name of a host: {error}"
            ) from error

    def _session(self) -> ssl.SSLObject:
        if self._tls is None:
            raise OSError("the TLS handshake has not begun")
        return self._tls

    def _receive(self, *, is_needed: bool) -> bool:
        """Whether there is more to decrypt, or the end; raises only if the bytes are needed."""
        try:
            data = self._socket.recv(_CHUNK_BYTES)
        except OSError:
            if is_needed:
                raise
            return False
        if data:
            self._incoming.write(data)
        else:
            self._incoming.write_eof()
        return True

    def _flush(self) -> bool:
        """Whether everything encrypted so far is sent."""
        while True:
            if not self._unsent:
                if not self._outgoing.pending:
                    return True
                self._unsent = memoryview(self._outgoing.read())
            try:
                count = self._socket.send(self._unsent)
            except BlockingIOError:
                return False
            self._unsent = self._unsent[count:]

    def _refusal(self, error: ssl.SSLError) -> SslAuthenticationError:
        if isinstance(error, ssl.SSLCertVerificationError):
            reason = f"its certificate is not trusted: {error.verify_message}"
        elif error.reason in _NOT_TLS:
            reason = "it does not speak TLS there"
        else:
            reason = (error.reason or str(error)).replace("_", " ").lower()
            if " alert " in reason:
                reason = "it refused this client: " + reason.partition(" alert ")[2]
        return SslAuthenticationError(f"TLS with {self._peer} failed: {reason}")
