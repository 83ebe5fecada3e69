"""Many connections on one thread."""

from __future__ import annotations

import errno
import os
import socket
from collections import deque

from kafkapy.common.network.channel_builders import ChannelBuilder
from kafkapy.common.network.idle_expiry_manager import IdleExpiryManager
from kafkapy.common.network.io_platform import HANG_UP, NATIVE, READ, WRITE, IoPlatform
from kafkapy.common.network.kafka_channel import KafkaChannel
from kafkapy.common.network.memory_pool import MemoryPool
from kafkapy.common.network.send_receive import (
    SCRATCH_BYTES,
    NetworkReceive,
    NetworkSend,
)
from kafkapy.common.network.socket_address import SocketAddress
from kafkapy.utils.time import Time

USE_DEFAULT_BUFFER = -1


class IdleTimeoutError(Exception):
    """The connection was closed because nothing happened on it for too long."""


class Selector:
    """Reads frames from and writes frames to registered connections without blocking.

    One thread calls everything except `wakeup`, which any thread may call. Results are left in
    `completed_receives`, `completed_sends`, `connected` and `disconnected`, which whoever handles
    them empties. A connection that is being made, or that must be encrypted or authenticated first,
    is in `channels` but gives and takes nothing until it is in `connected`.
    A connection gives at most one frame per poll.

    Muting a channel is only a flag; the poller learns of it when a muted channel turns out to be
    readable. It watches such a channel again only when all has been read that came meanwhile. So
    neither a client that waits for each response nor one that always sends ahead costs a system
    call for muting.

    Ports: org.apache.kafka.common.network.Selector
    """

    def __init__(
        self,
        channel_builder: ChannelBuilder,
        time: Time,
        *,
        max_receive_size: int,
        connections_max_idle_ms: int,
        memory_pool: MemoryPool | None = None,
        platform: IoPlatform = NATIVE,
    ) -> None:
        # constant after construction
        self._channel_builder = channel_builder
        self._time = time
        self._max_receive_size = max_receive_size
        self._memory_pool = memory_pool
        self._poller = platform.new_poller()
        self._waker = platform.new_waker()
        self._waker.register_with(self._poller)
        self._scratch = bytearray(SCRATCH_BYTES)

        self.channels: dict[str, KafkaChannel] = {}
        self.completed_receives: deque[tuple[KafkaChannel, bytearray]] = deque()
        self.completed_sends: deque[tuple[KafkaChannel, NetworkSend]] = deque()
        self.disconnected: deque[tuple[KafkaChannel, Exception]] = deque()
        self.connected: deque[KafkaChannel] = deque()
        self.total_wait_ns = 0
        self._by_fd: dict[int, KafkaChannel] = {}
        # Channels not in `_by_fd` yet: their connection is being made, or made but not ready.
        self._connecting: dict[int, tuple[KafkaChannel, socket.socket]] = {}
        self._preparing: dict[int, KafkaChannel] = {}
        self._idle_expiry = IdleExpiryManager(connections_max_idle_ms, platform.has_peer_closed)
        self._poll_number = 0
        self._reads_paused = False
        # Unmuted channels whose next frame may have been read or at least arrived already.
        self._buffered: dict[KafkaChannel, None] = {}
        self._waiting_for_memory: list[KafkaChannel] = []

        # Written by any thread. A waker sets `_woken`, then looks at `_sleeping`; the poller sets
        # `_sleeping`, then looks at `_woken`: one of them sees the other.
        self._woken = False
        self._sleeping = False
        self._memory_released = False

    def register(self, channel_id: str, sock: socket.socket, client_address: str) -> KafkaChannel:
        """Take over a connected socket. Raises OSError, and closes it, when it cannot be polled."""
        channel = self._add_channel(channel_id, sock, client_address)
        self._by_fd[channel.fd] = channel
        try:
            self._set_interest(channel, READ)
        except OSError:
            self.close_channel(channel)
            raise
        return channel

    def connect(
        self,
        channel_id: str,
        address: SocketAddress,
        *,
        send_buffer_bytes: int = USE_DEFAULT_BUFFER,
        receive_buffer_bytes: int = USE_DEFAULT_BUFFER,
    ) -> None:
        """Start a connection; later polls put its channel into `connected` or `disconnected`.

        Raises OSError when it fails at once, and ValueError for an id that is in use.
        """
        if channel_id in self.channels:
            raise ValueError(f"there is a connection {channel_id} already")
        sock = socket.socket(address.family, socket.SOCK_STREAM)
        try:
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            if send_buffer_bytes != USE_DEFAULT_BUFFER:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer_bytes)
            if receive_buffer_bytes != USE_DEFAULT_BUFFER:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
            result = sock.connect_ex(address.sockaddr)
            if result not in (0, errno.EINPROGRESS):
                raise OSError(result, os.strerror(result))
        except OSError:
            sock.close()
            raise
        channel = self._add_channel(channel_id, sock, str(address.sockaddr[0]), address)
        self._connecting[channel.fd] = (channel, sock)
        self._set_interest(channel, WRITE)

    def reauthenticate(self, channel: KafkaChannel) -> None:
        """Say again who this is, between requests; until then it is as when it was connected."""
        del self._by_fd[channel.fd]
        self._buffered.pop(channel, None)
        self._prepare(channel)

    def send(self, channel: KafkaChannel, send: NetworkSend) -> bool:
        """Start sending; True when everything could be written at once.

        Otherwise the rest is written by later polls and the send appears in `completed_sends`, or
        the connection in `disconnected`.
        """
        if channel.pending_send is not None:
            raise ValueError(f"{channel.id} is still sending its previous response")
        try:
            if send.write_to(channel.transport):
                return True
            channel.pending_send = send
            self._set_interest(channel, channel.interest | WRITE)
        except Exception as error:
            self._disconnect(channel, error)
        return False

    def unmute(self, channel: KafkaChannel) -> None:
        """Read again, unless a response or throttling is still pending."""
        if channel.maybe_unmute() and channel.is_open:
            # From now on it is idle, not from when the request came.
            self._note_activity(channel, self._time.nanoseconds())
            if channel.receive.has_buffered or not channel.interest & READ:
                self._buffered[channel] = None

    def pause_reads(self) -> None:
        """From now on only send."""
        self._reads_paused = True

    def resume_reads(self) -> None:
        if self._reads_paused:
            self._reads_paused = False
            for channel in list(self.channels.values()):
                if not channel.is_muted and not channel.receive.is_waiting_for_memory:
                    self._await_reads(channel)

    def wakeup(self) -> None:
        """Make the current or the next poll return at once."""
        self._woken = True
        if self._sleeping:
            self._sleeping = False
            self._waker.wake()

    def poll(self, timeout_ms: int) -> None:
        """Do what I/O can be done now, after waiting for some up to the time-out."""
        if self._memory_released:
            self._read_from_channels_waiting_for_memory()
        nothing_to_wait_for = self.completed_sends or self.disconnected
        if nothing_to_wait_for or (self._buffered and not self._reads_paused):
            timeout_ms = 0
        self._sleeping = True
        if self._woken:
            timeout_ms = 0
        start_ns = self._time.nanoseconds()
        try:
            ready = self._poller.poll(timeout_ms / 1000)
        finally:
            self._sleeping = False
            self._woken = False
        now_ns = self._time.nanoseconds()
        self.total_wait_ns += now_ns - start_ns
        self._poll_number += 1
        self._handle_ready(ready, now_ns)
        if self._buffered and not self._reads_paused:
            self._read_buffered(now_ns)
        if not self._reads_paused:
            # While they are, what a connection has sent is not looked at: it may seem idle.
            for channel in self._idle_expiry.expired(now_ns):
                self._disconnect(channel, IdleTimeoutError())

    def read_ahead(self) -> bool:
        """Whether frames that came along with earlier ones are now in `completed_receives`.

        For a client, whose channels are not muted: it need not poll for each of several responses.
        """
        if not self._buffered:
            return False
        self._poll_number += 1
        self._read_buffered(self._time.nanoseconds())
        return bool(self.completed_receives)

    def least_recently_used(self) -> KafkaChannel | None:
        """The channel that would be missed least."""
        return self._idle_expiry.least_recently_used()

    def close_channel(self, channel: KafkaChannel) -> None:
        """Close without an entry in `disconnected`. Does nothing the second time."""
        if channel.is_open:
            if channel.interest:
                self._set_interest(channel, 0)
            del self.channels[channel.id]
            if self._by_fd.pop(channel.fd, None) is None:
                self._connecting.pop(channel.fd, None)
                self._preparing.pop(channel.fd, None)
            self._idle_expiry.remove(channel)
            channel.close()

    def close(self) -> None:
        for channel in list(self.channels.values()):
            self.close_channel(channel)
        self._waker.close()
        self._poller.close()

    def _handle_ready(self, ready: list[tuple[int, int]], now_ns: int) -> None:
        for fd, events in ready:
            channel = self._by_fd.get(fd)
            if channel is None:
                if fd in self._connecting:
                    self._finish_connect(fd)
                elif fd in self._preparing:
                    self._prepare(self._preparing[fd])
                elif fd == self._waker.fileno():
                    self._waker.drain()
                continue
            self._note_activity(channel, now_ns)
            if events & WRITE:
                self._write(channel)
            if events & (READ | HANG_UP) and channel.is_open:
                if channel.is_muted or self._reads_paused:
                    # Also how a hang-up is put off until the request in flight is answered.
                    self._set_interest(channel, channel.interest & ~READ)
                else:
                    self._read(channel)

    def _add_channel(
        self,
        channel_id: str,
        sock: socket.socket,
        client_address: str,
        peer: SocketAddress | None = None,
    ) -> KafkaChannel:
        sock.setblocking(False)
        receive = NetworkReceive(
            self._max_receive_size, self._memory_pool, self._on_memory_available
        )
        channel = self._channel_builder.build_channel(
            channel_id, sock, receive=receive, client_address=client_address, peer=peer
        )
        self.channels[channel_id] = channel
        self._idle_expiry.update(channel, self._time.nanoseconds())
        return channel

    def _finish_connect(self, fd: int) -> None:
        channel, sock = self._connecting[fd]
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._disconnect(channel, OSError(code, os.strerror(code)))
            return
        del self._connecting[fd]
        self._prepare(channel)

    def _prepare(self, channel: KafkaChannel) -> None:
        """Go on with handshake and authentication; ready, it is a channel like any other."""
        try:
            awaited = channel.prepare()
        except Exception as error:
            self._disconnect(channel, error)
            return
        if awaited:
            self._preparing[channel.fd] = channel
            self._set_interest(channel, awaited)
            return
        self._preparing.pop(channel.fd, None)
        self._by_fd[channel.fd] = channel
        self._set_interest(channel, READ)
        self.connected.append(channel)

    def _read(self, channel: KafkaChannel) -> None:
        try:
            payload = channel.receive.read_from(channel.transport, self._scratch)
            if payload is not None:
                channel.last_receive_poll = self._poll_number
                self.completed_receives.append((channel, payload))
            elif channel.receive.is_waiting_for_memory:
                self._set_interest(channel, channel.interest & ~READ)
                self._waiting_for_memory.append(channel)
            else:
                self._set_interest(channel, channel.interest | READ)
        except Exception as error:
            self._disconnect(channel, error)

    def _read_buffered(self, now_ns: int) -> None:
        buffered, self._buffered = self._buffered, {}
        for channel in buffered:
            if channel.last_receive_poll == self._poll_number:
                self._buffered[channel] = None
            elif channel.is_open and not channel.is_muted:
                self._note_activity(channel, now_ns)
                self._read(channel)

    def _note_activity(self, channel: KafkaChannel, now_ns: int) -> None:
        if now_ns - channel.last_active_ns >= self._idle_expiry.granularity_ns:
            self._idle_expiry.update(channel, now_ns)

    def _write(self, channel: KafkaChannel) -> None:
        send = channel.pending_send
        try:
            if send is not None and send.write_to(channel.transport):
                channel.pending_send = None
                self._set_interest(channel, channel.interest & ~WRITE)
                self.completed_sends.append((channel, send))
        except Exception as error:
            self._disconnect(channel, error)

    def _on_memory_available(self) -> None:
        self._memory_released = True
        self.wakeup()

    def _read_from_channels_waiting_for_memory(self) -> None:
        self._memory_released = False
        waiting, self._waiting_for_memory = self._waiting_for_memory, []
        for channel in waiting:
            if channel.is_open:
                self._buffered[channel] = None
                if not self._reads_paused:
                    self._await_reads(channel)

    def _await_reads(self, channel: KafkaChannel) -> None:
        """At the operating system's limit that fails, which is that connection's affair alone."""
        try:
            self._set_interest(channel, channel.interest | READ)
        except OSError as error:
            self._disconnect(channel, error)

    def _disconnect(self, channel: KafkaChannel, cause: Exception) -> None:
        self.close_channel(channel)
        self.disconnected.append((channel, cause))

    def _set_interest(self, channel: KafkaChannel, interest: int) -> None:
        if interest == channel.interest:
            return
        # Without interest a channel is not registered at all: the poller would go on reporting
        # a hang-up.
        if not channel.interest:
            self._poller.register(channel.fd, interest)
        elif not interest:
            self._poller.unregister(channel.fd)
        else:
            self._poller.modify(channel.fd, interest)
        channel.interest = interest
