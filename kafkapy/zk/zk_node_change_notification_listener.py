import logging
from collections.abc import Callable
from queue import SimpleQueue

from kafkapy.common.errors import KafkaError
from kafkapy.utils.threads import ShutdownableThread
from kafkapy.utils.time import Time
from kafkapy.zk.kafka_zk_client import KafkaZkClient
from kafkapy.zk.metadata_store import StateChangeHandler, ZNodeChildChangeHandler
from kafkapy.zk.zk_data import zk_node_change_listener_handler

log = logging.getLogger(__name__)

_CHANGE_EXPIRATION_MS = 15 * 60 * 1000


class ZkNodeChangeNotificationListener:
    """Calls a handler with each notification written under a znode as a sequential child.

    The handler runs on the listener's own thread, once per notification and in order; what was
    written before the start is handled first. Old notifications are deleted: a broker down for
    longer reads the state itself when it starts.

    Ports: kafka.common.ZkNodeChangeNotificationListener
    """

    def __init__(
        self,
        zk_client: KafkaZkClient,
        seq_node_root: str,
        seq_node_prefix: str,
        handler: Callable[[bytes], None],
        *,
        time: Time,
        change_expiration_ms: int = _CHANGE_EXPIRATION_MS,
    ) -> None:
        self._zk_client = zk_client  # constant after construction, like all below
        self._seq_node_root = seq_node_root
        self._seq_node_prefix = seq_node_prefix
        self._handler = handler
        self._time = time
        self._change_expiration_ms = change_expiration_ms
        self._wake_ups: SimpleQueue[bool] = SimpleQueue()  # False: the thread should look around
        self._thread = _ChangeEventProcessThread(
            f"{seq_node_root}-event-process-thread", self._wake_ups, self.process_notifications
        )
        self._last_executed_change = -1  # used by the event thread only

    def init(self) -> None:
        """Watch, and handle what is there already."""
        self._zk_client.register_state_change_handler(
            _SessionHandler(zk_node_change_listener_handler(self._seq_node_root), self._wake_ups)
        )
        self._zk_client.register_znode_child_change_handler(
            _ChildChangeHandler(self._seq_node_root, self._wake_ups)
        )
        self._wake_ups.put(True)
        self._thread.start()

    def close(self) -> None:
        self._zk_client.unregister_state_change_handler(
            zk_node_change_listener_handler(self._seq_node_root)
        )
        self._zk_client.unregister_znode_child_change_handler(self._seq_node_root)
        self._thread.initiate_shutdown()
        self._wake_ups.put(False)
        self._thread.await_shutdown()

    def process_notifications(self) -> None:
        """Handle the notifications not handled before, and purge old ones."""
        try:
            prefix = self._seq_node_prefix
            children = self._zk_client.znodes.get_children(self._seq_node_root)
            numbered = sorted((int(c[len(prefix) :]), c) for c in children if c.startswith(prefix))
            now_ms = self._time.milliseconds()
            for number, child in numbered:
                if number > self._last_executed_change:
                    self._process(f"{self._seq_node_root}/{child}")
                    self._last_executed_change = number
            self._purge_obsolete_notifications(now_ms, [child for _, child in numbered])
        except KafkaError:
            log.exception("Cannot process the notifications in %s", self._seq_node_root)

    def _process(self, path: str) -> None:
        data, stat = self._zk_client.znodes.get_data_and_stat(path)
        if stat is None:
            return
        try:
            self._handler(data or b"")
        except Exception:
            # One bad notification must not keep those behind it from being handled.
            log.exception("Notification %s with data %r could not be handled", path, data)

    def _purge_obsolete_notifications(self, now_ms: int, children: list[str]) -> None:
        """In order of age: the first young one ends it."""
        for child in children:
            path = f"{self._seq_node_root}/{child}"
            _, stat = self._zk_client.znodes.get_data_and_stat(path)
            if stat is None:
                continue
            if now_ms - stat.ctime <= self._change_expiration_ms:
                break
            log.debug("Purging notification %s", path)
            self._zk_client.znodes.delete_path(path)


class _ChangeEventProcessThread(ShutdownableThread):
    """Ports: kafka.common.ZkNodeChangeNotificationListener.ChangeEventProcessThread"""

    def __init__(self, name: str, wake_ups: SimpleQueue[bool], process: Callable[[], None]) -> None:
        super().__init__(name)
        self._wake_ups = wake_ups
        self._process = process

    def do_work(self) -> None:
        if self._wake_ups.get():
            self._process()


class _ChildChangeHandler(ZNodeChildChangeHandler):
    """Ports: kafka.common.ZkNodeChangeNotificationListener.ChangeNotificationHandler"""

    def __init__(self, path: str, wake_ups: SimpleQueue[bool]) -> None:
        self.path = path
        self._wake_ups = wake_ups

    def handle_child_change(self) -> None:
        self._wake_ups.put(True)


class _SessionHandler(StateChangeHandler):
    """Watches do not outlive a session: look again, which sets them again.

    Ports: kafka.common.ZkNodeChangeNotificationListener.ZkStateChangeHandler
    """

    def __init__(self, name: str, wake_ups: SimpleQueue[bool]) -> None:
        self.name = name
        self._wake_ups = wake_ups

    def after_initializing_session(self) -> None:
        self._wake_ups.put(True)
