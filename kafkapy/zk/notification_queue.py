from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from kafkapy.zk.metadata_store import DeleteRequest, StoreCode
from kafkapy.zk.zk_request_sender import ZkRequestSender
from kafkapy.zk.znode_client import ZnodeClient

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class SequenceZNode(Protocol[T_co]):
    """Where the notifications of one kind are, and what is in them."""

    def path(self, sequence_number: str = "") -> str: ...

    def sequence_number(self, path: str) -> str: ...

    def decode(self, data: bytes | None) -> T_co: ...


class NotificationQueue(Generic[T]):
    """Numbered znodes below one path that brokers leave for the controller. Thread-safe."""

    def __init__(self, parent: str, znode: SequenceZNode[T], sender: ZkRequestSender) -> None:
        self._parent = parent
        self._znode = znode
        self._sender = sender
        self._znodes = ZnodeClient(sender)

    def sequence_numbers(self, *, register_watch: bool = True) -> list[str]:
        children = self._znodes.get_children(self._parent, register_watch=register_watch)
        return [self._znode.sequence_number(child) for child in children]

    def read(self, sequence_numbers: Sequence[str]) -> list[T]:
        """What those say that are still there."""
        found = []
        for _, response in self._znodes.get_all(sequence_numbers, self._znode.path):
            if response.result_code is not StoreCode.NO_NODE:
                response.maybe_raise()
                found.append(self._znode.decode(response.data))
        return found

    def delete(
        self,
        expected_controller_epoch_zk_version: int,
        sequence_numbers: Sequence[str] | None = None,
    ) -> None:
        """Those numbered, or all."""
        if sequence_numbers is None:
            sequence_numbers = self.sequence_numbers(register_watch=False)
        requests = [DeleteRequest(self._znode.path(number)) for number in sequence_numbers]
        self._sender.send_all(requests, expected_controller_epoch_zk_version)
