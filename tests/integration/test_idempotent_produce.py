"""InitProducerId and the sequence numbers of idempotent producers."""

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.init_producer_id import InitProducerIdRequest
from kafkapy.common.protocol.messages.produce import ProduceResponse
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.utils.time import SystemTime
from tests.helpers import api
from tests.helpers.broker import Client
from tests.helpers.records import records
from tests.integration.conftest import MakeBroker

Result = ProduceResponse.PartitionProduceResponse


def _batch(producer_id: int, sequence: int, *values: str, epoch: int = 0) -> MemoryRecords:
    return records(
        *values or (f"at-{sequence}",),
        producer_id=producer_id,
        producer_epoch=epoch,
        sequence=sequence,
        # A producer is forgotten when its last record is older than a day.
        timestamp=SystemTime().milliseconds(),
    )


def test_every_producer_gets_an_id_of_its_own(client: Client) -> None:
    ids = [api.init_producer_id(client) for _ in range(50)]

    assert len(set(ids)) == 50


@pytest.mark.parametrize("version", [3, 4, 5])
def test_a_producer_that_restarts_its_sequence_gets_a_new_id(client: Client, version: int) -> None:
    old_id = api.init_producer_id(client)

    response = client.request(
        InitProducerIdRequest(transactional_id=None, producer_id=old_id, producer_epoch=0), version
    )

    assert (response.error_code, response.producer_epoch) == (0, 0)
    assert response.producer_id not in (-1, old_id)


@pytest.mark.parametrize(("producer_id", "epoch"), [(5, -1), (-1, 0)])
def test_an_id_without_an_epoch_or_the_reverse_is_refused(
    client: Client, producer_id: int, epoch: int
) -> None:
    response = client.request(
        InitProducerIdRequest(transactional_id=None, producer_id=producer_id, producer_epoch=epoch)
    )

    assert response.error_code == Errors.INVALID_REQUEST.code


def test_consecutive_sequences_are_appended(client: Client, topic: str) -> None:
    producer_id = api.init_producer_id(client)

    offsets = [
        api.produced(client, topic, _batch(producer_id, 0, "a", "b")),
        api.produced(client, topic, _batch(producer_id, 2, "c")),
        api.produced(client, topic, _batch(producer_id, 3, "d", "e")),
    ]

    assert offsets == [0, 2, 3]
    assert api.fetched_values(api.fetch(client, topic)) == [b"a", b"b", b"c", b"d", b"e"]


@pytest.mark.parametrize("back", range(1, 6))
def test_one_of_the_last_five_batches_sent_again_is_answered_with_its_first_offset(
    client: Client, topic: str, back: int
) -> None:
    producer_id = api.init_producer_id(client)
    for sequence in range(0, 14, 2):
        api.produced(client, topic, _batch(producer_id, sequence, "x", "y"))
    repeated = 14 - 2 * back

    result = api.produce(client, topic, _batch(producer_id, repeated, "x", "y"))

    assert (result.error_code, result.base_offset) == (0, repeated)
    assert api.list_offset(client, topic, api.LATEST).offset == 14


def test_an_older_batch_sent_again_is_a_duplicate_or_out_of_order(
    client: Client, topic: str
) -> None:
    producer_id = api.init_producer_id(client)
    for sequence in range(8):
        api.produced(client, topic, _batch(producer_id, sequence))

    result = api.produce(client, topic, _batch(producer_id, 0))

    # Its offset is forgotten: the producer can only be told that it was written or does not fit.
    assert result.error_code in (
        Errors.DUPLICATE_SEQUENCE_NUMBER.code,
        Errors.OUT_OF_ORDER_SEQUENCE_NUMBER.code,
    )
    assert api.list_offset(client, topic, api.LATEST).offset == 8


@pytest.mark.parametrize("sequence", [2, 5, 100])
def test_a_gap_in_the_sequence_is_refused(client: Client, topic: str, sequence: int) -> None:
    producer_id = api.init_producer_id(client)
    api.produced(client, topic, _batch(producer_id, 0))

    result = api.produce(client, topic, _batch(producer_id, sequence))

    assert result.error_code == Errors.OUT_OF_ORDER_SEQUENCE_NUMBER.code
    assert api.list_offset(client, topic, api.LATEST).offset == 1


def test_the_right_batch_is_accepted_after_a_refused_one(client: Client, topic: str) -> None:
    producer_id = api.init_producer_id(client)
    api.produced(client, topic, _batch(producer_id, 0))
    api.produce(client, topic, _batch(producer_id, 9))

    assert api.produced(client, topic, _batch(producer_id, 1)) == 1


def test_a_partition_that_does_not_know_the_producer_accepts_any_first_sequence(
    client: Client, topic: str
) -> None:
    # Its state may have expired or been deleted with the records.
    producer_id = api.init_producer_id(client)

    assert api.produced(client, topic, _batch(producer_id, 40)) == 0


def test_an_older_epoch_is_fenced(client: Client, topic: str) -> None:
    producer_id = api.init_producer_id(client)
    api.produced(client, topic, _batch(producer_id, 0, epoch=1))

    result = api.produce(client, topic, _batch(producer_id, 1, epoch=0))

    assert result.error_code == Errors.INVALID_PRODUCER_EPOCH.code
    assert api.list_offset(client, topic, api.LATEST).offset == 1


def test_a_newer_epoch_starts_again_at_sequence_zero(client: Client, topic: str) -> None:
    producer_id = api.init_producer_id(client)
    api.produced(client, topic, _batch(producer_id, 0, "a", "b"))

    skipped = api.produce(client, topic, _batch(producer_id, 2, epoch=1))
    fresh = api.produce(client, topic, _batch(producer_id, 0, epoch=1))

    assert skipped.error_code == Errors.OUT_OF_ORDER_SEQUENCE_NUMBER.code
    assert (fresh.error_code, fresh.base_offset) == (0, 2)


def test_partitions_keep_sequences_of_their_own(client: Client) -> None:
    topic = api.create_topic(client, partitions=2)
    producer_id = api.init_producer_id(client)

    for partition in (0, 1):
        assert api.produced(client, topic, _batch(producer_id, 0), partition=partition) == 0


def test_five_requests_in_flight_keep_their_order(client: Client, topic: str) -> None:
    producer_id = api.init_producer_id(client)
    for sequence in range(30):
        client.send(api.produce_request(topic, _batch(producer_id, sequence)))
        if sequence >= 5:
            answer = client.receive().responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (0, sequence - 5)

    for _ in range(5):
        client.receive()
    assert api.list_offset(client, topic, api.LATEST).offset == 30


def test_a_duplicate_is_recognised_after_a_restart(make_broker: MakeBroker) -> None:
    broker = make_broker()
    with broker.client() as client:
        topic = api.create_topic(client)
        producer_id = api.init_producer_id(client)
        for sequence in range(3):
            api.produced(client, topic, _batch(producer_id, sequence))

    broker.restart()

    with broker.client() as client:
        again = api.produce(client, topic, _batch(producer_id, 2))
        gap = api.produce(client, topic, _batch(producer_id, 7))
        next_one = api.produce(client, topic, _batch(producer_id, 3))
        other_id = api.init_producer_id(client)

        assert (again.error_code, again.base_offset) == (0, 2)
        assert gap.error_code == Errors.OUT_OF_ORDER_SEQUENCE_NUMBER.code
        assert (next_one.error_code, next_one.base_offset) == (0, 3)
        assert other_id > producer_id
        assert api.list_offset(client, topic, api.LATEST).offset == 4
