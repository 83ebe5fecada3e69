import threading

import pytest

from kafkapy.common.errors import KafkaError
from kafkapy.coordinator.transaction.producer_id_manager import ProducerIdManager
from kafkapy.zk.zk_data import ProducerIdsBlock


class Blocks:
    """Hands out blocks one after another, as the metadata store would."""

    def __init__(self, size: int) -> None:
        self._size = size
        self.claimed = 0
        self.failing = False

    def __call__(self) -> ProducerIdsBlock:
        if self.failing:
            raise KafkaError("the store cannot be reached")
        block = ProducerIdsBlock(0, self.claimed * self._size, self._size)
        self.claimed += 1
        return block


def test_no_block_is_claimed_before_the_first_id() -> None:
    blocks = Blocks(10)

    ProducerIdManager(blocks)

    assert blocks.claimed == 0


def test_ids_go_on_into_the_next_block() -> None:
    blocks = Blocks(3)
    manager = ProducerIdManager(blocks)

    ids = [manager.generate_producer_id() for _ in range(7)]

    assert ids == list(range(7))
    assert blocks.claimed == 3


def test_a_failed_claim_raises_and_is_tried_again() -> None:
    blocks = Blocks(1)
    manager = ProducerIdManager(blocks)
    manager.generate_producer_id()
    blocks.failing = True
    with pytest.raises(KafkaError):
        manager.generate_producer_id()

    blocks.failing = False

    assert manager.generate_producer_id() == 1


def test_managers_of_several_brokers_never_share_an_id() -> None:
    blocks = Blocks(4)
    managers = [ProducerIdManager(blocks) for _ in range(3)]

    ids = [manager.generate_producer_id() for _ in range(10) for manager in managers]

    assert len(set(ids)) == 30


def test_threads_never_share_an_id() -> None:
    manager = ProducerIdManager(Blocks(7))
    ids: list[list[int]] = [[] for _ in range(4)]

    def draw(own: list[int]) -> None:
        own.extend(manager.generate_producer_id() for _ in range(200))

    threads = [threading.Thread(target=draw, args=(own,)) for own in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(producer_id for own in ids for producer_id in own) == list(range(800))
