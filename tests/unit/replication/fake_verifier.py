from __future__ import annotations

from collections.abc import Callable, Collection

from kafkapy.common.errors import Errors
from kafkapy.common.types import TopicPartition
from kafkapy.replication.transaction_verification import VerificationErrors


class FakeVerifier:
    """Answers as the test has told it, or when the test says so."""

    def __init__(self) -> None:
        self.asked: list[list[TopicPartition]] = []
        self.unverified: dict[TopicPartition, Errors] = {}
        self.holds_back = False
        self.callbacks: list[Callable[[VerificationErrors], None]] = []

    def verify_transaction(
        self,
        transactional_id: str,
        *,
        producer_id: int,
        producer_epoch: int,
        topic_partitions: Collection[TopicPartition],
        supports_abortable_error: bool,
        callback: Callable[[VerificationErrors], None],
    ) -> None:
        self.asked.append(list(topic_partitions))
        if self.holds_back:
            self.callbacks.append(callback)
        else:
            callback(self.unverified)
