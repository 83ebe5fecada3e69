"""One life of a broker under test."""

from __future__ import annotations

import logging
import shutil
import socket
from collections.abc import Callable, Mapping
from pathlib import Path

from kafkapy.common.errors import KafkaError, KafkaStorageError
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.end_point import EndPoint
from kafkapy.network.request_channel import RequestChannel
from kafkapy.network.socket_server_config import SocketServerConfig
from kafkapy.server.kafka_config import KafkaConfig
from kafkapy.server.kafka_server import KafkaServer
from kafkapy.server.request_handler import ApiRequestHandler
from kafkapy.server.server_hooks import ServerHooks
from kafkapy.storage.file_system import FileSystem
from kafkapy.storage.unified_log import UnifiedLog
from kafkapy.testing.broker_image import BrokerImage, capture
from kafkapy.testing.controlled_time import ControlledTime
from kafkapy.testing.fault_plan import FaultPlan
from kafkapy.testing.intercepted_apis import INTERNAL_LISTENER, InterceptedApis
from kafkapy.testing.observed_request_channel import ObservedRequestChannel
from kafkapy.testing.request_gate import RequestGate
from kafkapy.testing.request_interceptor import RequestInterceptor
from kafkapy.testing.request_log import RequestLog
from kafkapy.utils.scheduler import KafkaScheduler
from kafkapy.utils.time import Time
from kafkapy.zk.embedded_store import EmbeddedStore
from kafkapy.zk.metadata_store import MetadataStore
from kafkapy.zk.znode_tree import ZnodeTree

log = logging.getLogger(__name__)

OpenSocket = Callable[[EndPoint, SocketServerConfig], socket.socket]
Fingerprint = tuple[int, int, frozenset[tuple[TopicPartition, int, int, int, int, int]]]

_SETTLE_TIMEOUT_MS = 5_000
_CAPTURE_ATTEMPTS = 20
_PAUSE_MS = 5


class Incarnation:
    """A KafkaServer with a directory, a metadata tree and a clock of its own.

    It starts without serving clients and with its time-outs standing still; `open` lets both begin.
    Methods belong to the one thread at a time that owns it.
    """

    def __init__(
        self,
        directory: Path,
        properties: Mapping[str, str],
        *,
        faults: FaultPlan,
        request_log: RequestLog,
        file_system: FileSystem,
        open_socket: OpenSocket,
        on_fatal_error: Callable[[str], None],
        tree: bytes | None = None,
        clock_offset_ms: int = 0,
    ) -> None:
        # constant after construction
        self.directory = directory
        self.time = ControlledTime(clock_offset_ms, is_frozen=True)
        self._interceptor = RequestInterceptor(faults, request_log)
        self._gate = RequestGate()
        self._delays = KafkaScheduler(1, self.time, "delayed-request-")
        config = KafkaConfig({**properties, "log.dirs": str(directory)})
        self.server = KafkaServer(
            config,
            self.time,
            file_system=file_system,
            store=self._open_store,
            on_fatal_error=on_fatal_error,
            hooks=ServerHooks(
                request_channel_class=ObservedRequestChannel,
                wrap_apis=self._wrap,
                open_server_socket=open_socket,
                held_listeners=frozenset(
                    e.listener_name
                    for e in config.listeners
                    if e.listener_name != INTERNAL_LISTENER
                ),
                drain_timeout_ms=0,
            ),
        )
        # The last: nothing has to close it if the properties are refused.
        self._tree = ZnodeTree(None, self.time, image=tree)

    def start(self) -> None:
        """Raises KafkaError, with nothing left behind but the directory."""
        self._delays.startup()
        try:
            self.server.startup()
        except BaseException:
            self.stop()
            raise
        # Groups and transactions are loaded in the background: clients are to find them at once.
        self.time.settle(_SETTLE_TIMEOUT_MS)

    def open(self) -> None:
        """Serve clients, from this moment on."""
        self.time.thaw()
        self.server.open_listeners()

    def close_listeners(self) -> None:
        """Serve nobody any more; connections are closed."""
        self.server.close_listeners()

    def stop(self) -> None:
        self._delays.shutdown()
        self.server.shutdown()
        # The server closes the store it has opened, which it may not have come to.
        self._tree.close()

    def discard(self) -> None:
        """Stop, and leave nothing behind."""
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)

    @property
    def tree_image(self) -> bytes:
        return self._tree.image()

    def fingerprint(self) -> Fingerprint:
        """Equal at two moments if nothing was stored between them and nobody moved the clock."""
        logs = frozenset(
            (
                found.topic_partition,
                id(found),
                found.log_start_offset,
                found.high_watermark,
                found.log_end_offset,
                found.size,  # compaction changes nothing else
            )
            for found in self._logs()
        )
        return self._tree.last_zxid, self.time.offset_ms, logs

    def capture(self, target: Path) -> BrokerImage:
        """What is stored now, while requests wait.

        Raises TimeoutError if it never holds still, KafkaError if there is no room for the image.
        """
        with self._gate.closed():
            for _ in range(_CAPTURE_ATTEMPTS):
                self.time.settle(_SETTLE_TIMEOUT_MS)
                before = self.fingerprint()
                try:
                    image = capture(
                        self._logs(),
                        log_dir=self.directory,
                        target=target,
                        tree=self._tree.image(),
                        clock_offset_ms=self.time.offset_ms,
                    )
                except FileNotFoundError as e:
                    # It was there a moment ago.
                    log.debug("The broker does not hold still: %s", e)
                except (OSError, KafkaStorageError) as e:
                    shutil.rmtree(target, ignore_errors=True)
                    raise KafkaError(f"the broker cannot be checkpointed: {e}") from e
                else:
                    if self.fingerprint() == before:
                        return image
                shutil.rmtree(target, ignore_errors=True)
                self.time.sleep(_PAUSE_MS)
        raise TimeoutError("the broker does not come to rest, so it cannot be checkpointed")

    def _logs(self) -> tuple[UnifiedLog, ...]:
        manager = self.server.log_manager
        return manager.all_logs() if manager is not None else ()

    def _open_store(self, config: KafkaConfig, time: Time) -> MetadataStore:
        return EmbeddedStore(self._tree.path, time, tree=self._tree)

    def _wrap(self, channel: RequestChannel, apis: ApiRequestHandler) -> ApiRequestHandler:
        assert isinstance(channel, ObservedRequestChannel)
        channel.interceptor = self._interceptor
        return InterceptedApis(
            channel,
            apis,
            interceptor=self._interceptor,
            gate=self._gate,
            delays=self._delays,
            time=self.time,
        )
