"""Real threads and purgatories on a clock that stands still: no time-out saves anything."""

import threading

import pytest

from kafkapy.common.errors import Errors
from tests.helpers.records import records
from tests.helpers.waiting import wait_until
from tests.unit.replication.harness import TP, ReplicaHarness

PRODUCERS = 3
BATCHES = 60


@pytest.fixture
def broker(make_broker) -> ReplicaHarness:
    broker = make_broker(real_purgatories=True)
    broker.lead(replicas=(1, 2))
    return broker


def test_no_waiting_request_misses_what_it_waits_for(broker):
    answered: list[Errors] = []
    consumed: list[bytes] = []
    failures: list[BaseException] = []
    total = PRODUCERS * BATCHES

    def guarded(task):
        def run() -> None:
            try:
                task()
            except BaseException as error:
                failures.append(error)

        return threading.Thread(target=run, daemon=True)

    def produce(producer: int) -> None:
        for i in range(BATCHES):
            done = threading.Event()

            def on_answer(answer, done=done) -> None:
                answered.append(answer[TP].error)
                done.set()

            broker.append(records(f"{producer}-{i}"), on_answer)
            assert done.wait(30)

    def read(replica_id: int) -> None:
        """A consumer, or the follower without which nothing is committed."""
        offset = 0
        while offset < total:
            answers: list = []
            done = threading.Event()
            broker.fetch_into(
                offset,
                replica_id,
                lambda answer, answers=answers, done=done: (answers.append(answer), done.set()),
            )
            assert done.wait(30)
            ((_, result),) = answers[0]
            assert result.error is Errors.NONE
            for batch in result.records.batches():
                offset = batch.next_offset
                if replica_id < 0:
                    consumed.extend(bytes(record.value) for record in batch.records())
        # Tell the leader that the last records have arrived.
        if replica_id >= 0:
            broker.fetch(offset, replica_id=replica_id, max_wait_ms=0)

    threads = [guarded(lambda n=n: produce(n)) for n in range(PRODUCERS)]
    threads += [guarded(lambda: read(2)), guarded(lambda: read(-1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert failures == []
    assert not any(thread.is_alive() for thread in threads)
    assert answered == [Errors.NONE] * total
    assert len(consumed) == total
    for producer in range(PRODUCERS):
        own = [value for value in consumed if value.startswith(b"%d-" % producer)]
        assert own == [b"%d-%d" % (producer, i) for i in range(BATCHES)]
    operations = broker.replica_manager.delayed_operations
    wait_until(lambda: operations.produce.num_delayed == operations.fetch.num_delayed == 0)
