"""A producer that hangs up instead of reading its answers, then sends everything again."""

import random
from collections import Counter

from kafkapy.common.record.memory_records import MemoryRecords
from tests.helpers.api import produce, produce_request
from tests.helpers.broker import Client
from tests.helpers.records import records

_IN_FLIGHT = 5  # as many batches as a broker remembers for each producer


class LostAnswers:
    """An idempotent producer. `sent` is what each partition should hold."""

    def __init__(self, topic: str, partitions: int, producer_id: int, rng: random.Random) -> None:
        self._topic = topic
        self._producer_id = producer_id
        self._rng = rng
        self.sent: list[list[bytes]] = [[] for _ in range(partitions)]
        self.codes: Counter[int] = Counter()

    def send(self, address: tuple[str, int], batches: int) -> None:
        """So many batches, in groups that are lost together."""
        while batches > 0:
            count = min(batches, self._rng.randint(1, _IN_FLIGHT))
            self._send_group(address, count)
            batches -= count

    def _send_group(self, address: tuple[str, int], count: int) -> None:
        partition = self._rng.randrange(len(self.sent))
        stored = self.sent[partition]
        group = []
        for _ in range(count):
            values = [b"%d" % (len(stored) + i) for i in range(self._rng.randint(1, 3))]
            group.append((len(stored), values))
            stored.extend(values)
        with Client(address) as client:
            for first, values in group:
                client.send(
                    produce_request(self._topic, self._batch(first, values), partition=partition)
                )
            if self._rng.random() < 0.5:
                client.receive()  # so that the retry is not always in time to overtake
        with Client(address) as client:
            for first, values in group:
                result = produce(
                    client, self._topic, self._batch(first, values), partition=partition
                )
                self.codes[result.error_code] += 1
                assert result.base_offset == first, result

    def _batch(self, first: int, values: list[bytes]) -> MemoryRecords:
        return records(*values, producer_id=self._producer_id, producer_epoch=0, sequence=first)
