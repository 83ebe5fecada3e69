import logging

from kafkapy.zk.metadata_store import (
    CreateMode,
    CreateRequest,
    DeleteRequest,
    GetDataRequest,
    MetadataStore,
    NodeExistsError,
    Stat,
    StoreCode,
)
from kafkapy.zk.zk_request_sender import ZkRequestSender

log = logging.getLogger(__name__)


class CheckedEphemeral:
    """Creates an ephemeral znode that may already be ours, from a lost answer or a past session.

    Used by one thread at a time.

    Ports: kafka.zk.KafkaZkClient.CheckedEphemeral
    """

    def __init__(self, sender: ZkRequestSender, store: MetadataStore) -> None:
        self._sender = sender  # constant after construction, like all below
        self._store = store
        self._last_session_id = -1  # under which we created it before

    def create(self, path: str, data: bytes) -> Stat:
        """NodeExistsError when the znode belongs to somebody else."""
        while True:
            response = self._sender.send(CreateRequest(path, data, CreateMode.EPHEMERAL))
            if response.result_code is not StoreCode.NODE_EXISTS:
                stat = response.stat_or_raise()
                break
            existing = self._sender.send(GetDataRequest(path))
            if existing.result_code is StoreCode.NO_NODE:
                log.info("%s went away while it was being read, creating it again", path)
                continue
            stat = existing.stat_or_raise()
            if stat.ephemeral_owner == self._store.session_id:
                break
            if stat.ephemeral_owner != self._last_session_id:
                log.error(
                    "%s exists and belongs to session %d, not to ours %d",
                    path,
                    stat.ephemeral_owner,
                    self._store.session_id,
                )
                raise NodeExistsError(StoreCode.NODE_EXISTS, path)
            # The server has not yet noticed that our previous session is over.
            deleted = self._sender.send(DeleteRequest(path, stat.version))
            if deleted.result_code is not StoreCode.NO_NODE:
                deleted.maybe_raise()
        self._last_session_id = self._store.session_id
        return stat
