"""A connection to a server that can be cut."""

import contextlib
import socket
import threading


class TcpProxy:
    """Forwards connections to a port of this machine; `cut` drops them, `mend` lets new ones in."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._lock = threading.Lock()
        self._is_cut = False  # guarded by self._lock, like all below
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._start(self._accept)

    def cut(self) -> None:
        with self._lock:
            self._is_cut = True
            self._drop_locked()

    def mend(self) -> None:
        with self._lock:
            self._is_cut = False

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            self._is_cut = True
            self._drop_locked()
            threads = list(self._threads)
        for thread in threads:
            thread.join()

    def _drop_locked(self) -> None:
        for sock in self._sockets:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        self._sockets.clear()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if self._is_cut:
                    client.close()
                    continue
                server = socket.create_connection(("127.0.0.1", self._target_port))
                self._sockets += [client, server]
            self._start(self._pump, client, server)
            self._start(self._pump, server, client)

    def _start(self, target: object, *args: socket.socket) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    @staticmethod
    def _pump(source: socket.socket, sink: socket.socket) -> None:
        """The side that reads a socket also closes it."""
        try:
            while data := source.recv(65536):
                sink.sendall(data)
        except OSError:
            pass
        finally:
            with contextlib.suppress(OSError):
                sink.shutdown(socket.SHUT_RDWR)
            source.close()
