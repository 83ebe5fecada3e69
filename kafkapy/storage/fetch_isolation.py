"""How far a reader may see."""

from enum import Enum


class FetchIsolation(Enum):
    """The end of what a fetch may return.

    Ports: org.apache.kafka.storage.internals.log.FetchIsolation
    """

    LOG_END = "log_end"  # followers
    HIGH_WATERMARK = "high_watermark"  # consumers, read_uncommitted
    TXN_COMMITTED = "txn_committed"  # consumers, read_committed
