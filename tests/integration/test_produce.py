"""Produce: what is accepted, what is refused and how each is told."""

import struct

import pytest

from kafkapy.common.compression import CompressionType
from kafkapy.common.errors import Errors
from kafkapy.common.protocol.messages.create_topics import CreateTopicsRequest
from kafkapy.common.protocol.messages.metadata import MetadataRequest
from kafkapy.common.protocol.messages.produce import ProduceRequest
from kafkapy.common.record.memory_records import MemoryRecords
from kafkapy.common.record.record import Header, SimpleRecord, TimestampType
from kafkapy.utils.time import SystemTime
from tests.helpers import api
from tests.helpers.broker import Broker, Client
from tests.helpers.records import TIMESTAMP, forged, joined, records

_FIRST_VERSION_WITH_RECORD_ERRORS = 8
_CODECS = list(CompressionType)


def _now_ms() -> int:
    return SystemTime().milliseconds()


# Acknowledgements


@pytest.mark.parametrize("acks", [1, -1])
def test_an_acknowledged_produce_tells_the_offset_and_the_log_start(
    client: Client, topic: str, acks: int
) -> None:
    api.produced(client, topic, records("a", "b"))

    result = api.produce(client, topic, records("c"), acks=acks)

    assert (result.error_code, result.base_offset) == (0, 2)
    assert (result.log_append_time_ms, result.log_start_offset) == (-1, 0)
    assert (result.record_errors, result.error_message) == ([], None)


@pytest.mark.parametrize("acks", [2, -2, 32767])
@pytest.mark.parametrize("version", [0, 2, 3, 8, 11])
def test_other_acks_are_refused_for_each_partition(client: Client, acks: int, version: int) -> None:
    topic = api.create_topic(client, partitions=2)
    magic = 1 if version < 3 else 2

    response = client.request(
        ProduceRequest(
            acks=acks,
            timeout_ms=1000,
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name=topic,
                    partition_data=[
                        ProduceRequest.PartitionProduceData(
                            index=index, records=records("a", magic=magic)
                        )
                        for index in (0, 1)
                    ],
                )
            ],
        ),
        version,
    )

    (answer,) = response.responses
    assert [(p.index, p.error_code) for p in answer.partition_responses] == [
        (0, Errors.INVALID_REQUIRED_ACKS.code),
        (1, Errors.INVALID_REQUIRED_ACKS.code),
    ]
    assert api.fetch(client, topic).high_watermark == 0


@pytest.mark.parametrize("version", [0, 2, 3, 11])
def test_acks_zero_gets_no_response_and_the_next_request_does(
    client: Client, topic: str, version: int
) -> None:
    magic = 1 if version < 3 else 2

    client.send(
        api.produce_request(topic, records("a", magic=magic), acks=0),
        version,
        expects_response=False,
    )

    response = client.request(MetadataRequest(topics=[]))  # checks the correlation id
    assert response.topics == []
    assert api.fetched_values(api.fetch(client, topic)) == [b"a"]


def test_many_acks_zero_in_a_row_keep_their_order(client: Client, topic: str) -> None:
    for number in range(50):
        client.send(
            api.produce_request(topic, records(f"{number}"), acks=0), expects_response=False
        )

    client.request(MetadataRequest(topics=[]))
    assert api.fetched_values(api.fetch(client, topic)) == [b"%d" % n for n in range(50)]


def test_acks_zero_that_fails_closes_the_connection(broker: Broker) -> None:
    with broker.client() as client:
        client.send(
            api.produce_request("no-such-topic", records("a"), acks=0), expects_response=False
        )

        assert client.is_closed()


def test_acks_zero_with_a_bad_batch_closes_the_connection(broker: Broker, topic: str) -> None:
    corrupt = forged(records("a"), crc=1)
    with broker.client() as client:
        client.send(api.produce_request(topic, corrupt, acks=0), expects_response=False)

        assert client.is_closed()


# Topics


@pytest.mark.parametrize(("name", "partition"), [("no-such-topic", 0), (None, 1), (None, -1)])
def test_an_unknown_partition_is_refused(
    client: Client, topic: str, name: str | None, partition: int
) -> None:
    result = api.produce(client, name or topic, records("a"), partition=partition)

    assert result.error_code == Errors.UNKNOWN_TOPIC_OR_PARTITION.code
    assert result.base_offset == -1


def test_one_bad_partition_does_not_fail_the_others(client: Client, topic: str) -> None:
    request = api.produce_request(topic, records("a"))
    request.topic_data += api.produce_request("no-such-topic", records("b")).topic_data

    response = client.request(request)

    assert {t.name: t.partition_responses[0].error_code for t in response.responses} == {
        topic: 0,
        "no-such-topic": Errors.UNKNOWN_TOPIC_OR_PARTITION.code,
    }
    assert api.fetched_values(api.fetch(client, topic)) == [b"a"]


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_only_the_admin_client_may_write_to_an_internal_topic(broker: Broker, name: str) -> None:
    with broker.client() as client, broker.client(client_id="__admin_client") as admin:
        client.request(CreateTopicsRequest(topics=[api.creatable(name)], timeout_ms=15_000))

        refused = api.produce(client, name, records("a", key="k"))
        accepted = api.produce(admin, name, records("a", key="k"))

    assert refused.error_code == Errors.INVALID_TOPIC_EXCEPTION.code
    assert accepted.error_code == 0


# Formats


@pytest.mark.parametrize("version", [0, 1, 2])
@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", _CODECS[:4], ids=lambda codec: codec.name)
def test_an_old_message_set_can_be_fetched_in_every_version(
    client: Client, topic: str, version: int, magic: int, codec: CompressionType
) -> None:
    written = [SimpleRecord(TIMESTAMP + n, b"k%d" % n, b"v%d" % n) for n in range(3)]

    result = api.produce(
        client, topic, records(*written, magic=magic, codec=codec), version=version
    )

    assert (result.error_code, result.base_offset) == (0, 0)
    for fetch_version in range(18):
        read = api.fetched_records(api.fetch(client, topic, version=fetch_version))
        assert [(r.offset, r.key, r.value) for r in read] == [
            (n, record.key, record.value) for n, record in enumerate(written)
        ]
        if magic == 1 and fetch_version >= 2:
            assert [r.timestamp for r in read] == [record.timestamp for record in written]
        else:
            assert {r.timestamp for r in read} == {-1}


@pytest.mark.parametrize("version", [3, 7, 11])
@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_message_set_is_refused_from_version_3(
    client: Client, topic: str, version: int, magic: int
) -> None:
    result = api.produce(client, topic, records("a", magic=magic), version=version)

    assert result.error_code == Errors.INVALID_RECORD.code


@pytest.mark.parametrize("version", [3, 11])
def test_two_batches_for_one_partition_are_refused_from_version_3(
    client: Client, topic: str, version: int
) -> None:
    result = api.produce(client, topic, joined(records("a"), records("b")), version=version)

    assert result.error_code == Errors.INVALID_RECORD.code


@pytest.mark.parametrize("data", [None, b""], ids=["null", "empty"])
def test_a_partition_without_records_is_refused(
    client: Client, topic: str, data: bytes | None
) -> None:
    result = api.produce(client, topic, data)

    assert result.error_code == Errors.INVALID_RECORD.code


@pytest.mark.parametrize(
    ("version", "error"),
    [(3, Errors.UNSUPPORTED_COMPRESSION_TYPE), (6, Errors.UNSUPPORTED_COMPRESSION_TYPE), (7, None)],
)
def test_zstd_needs_version_7(
    client: Client, topic: str, version: int, error: Errors | None
) -> None:
    batch = records("a" * 100, codec=CompressionType.ZSTD)

    result = api.produce(client, topic, batch, version=version)

    assert result.error_code == (error.code if error else 0)


@pytest.mark.parametrize("codec", _CODECS, ids=lambda codec: codec.name)
def test_keys_headers_and_timestamps_come_back_as_they_were_sent(
    client: Client, topic: str, codec: CompressionType
) -> None:
    written = (
        SimpleRecord(TIMESTAMP, b"key", b"value", (Header("h", b"1"), Header("h", None))),
        SimpleRecord(TIMESTAMP + 5, None, None),
        SimpleRecord(TIMESTAMP - 5, b"", b""),
    )

    api.produced(client, topic, records(*written, codec=codec))

    (batch,) = api.fetched_batches(api.fetch(client, topic))
    assert batch.compression_type is codec
    assert [SimpleRecord(r.timestamp, r.key, r.value, r.headers) for r in batch.records()] == list(
        written
    )


def test_a_transactional_batch_without_a_transactional_id_is_refused(
    client: Client, topic: str
) -> None:
    batch = records("a", producer_id=5, producer_epoch=0, sequence=0, transactional=True)

    result = api.produce(client, topic, batch)

    assert result.error_code == Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code
    assert api.fetch(client, topic).high_watermark == 0


def test_a_request_with_transactional_records_but_no_transactional_id_is_refused_as_a_whole(
    client: Client, topic: str
) -> None:
    batch = records("a", producer_id=5, producer_epoch=0, sequence=0, transactional=True)
    request = api.produce_request(topic, records("b"))
    request.topic_data += api.produce_request("no-such-topic", batch).topic_data

    response = client.request(request)

    assert {t.name: t.partition_responses[0].error_code for t in response.responses} == {
        topic: Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code,
        "no-such-topic": Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code,
    }
    assert api.fetch(client, topic).high_watermark == 0


def test_a_transactional_id_is_missed_before_the_records_are_validated(
    client: Client, topic: str
) -> None:
    zstd = records(
        "a",
        producer_id=5,
        producer_epoch=0,
        sequence=0,
        transactional=True,
        codec=CompressionType.ZSTD,
    )

    result = api.produce(client, topic, zstd, version=6)

    assert result.error_code == Errors.TRANSACTIONAL_ID_AUTHORIZATION_FAILED.code


# Validation


@pytest.mark.parametrize("version", range(10))
def test_damage_in_one_partition_leaves_the_others_alone(client: Client, version: int) -> None:
    topic = api.create_topic(client, partitions=2)
    whole = records("a", magic=2 if version >= 3 else 1)
    # What follows the batch claims a size that no batch has.
    damaged = MemoryRecords(bytes(whole.buffer) + struct.pack(">qi", 0, 3) + bytes(40))

    response = client.request(
        ProduceRequest(
            acks=1,
            timeout_ms=1000,
            topic_data=[
                ProduceRequest.TopicProduceData(
                    name=topic,
                    partition_data=[
                        ProduceRequest.PartitionProduceData(index=0, records=damaged.buffer),
                        ProduceRequest.PartitionProduceData(index=1, records=whole.buffer),
                    ],
                )
            ],
        ),
        version,
    )

    (answer,) = response.responses
    codes = {result.index: result.error_code for result in answer.partition_responses}
    assert codes == {0: Errors.CORRUPT_MESSAGE.code, 1: Errors.NONE.code}
    assert api.fetched_values(api.fetch(client, topic, partition=1)) == [b"a"]


def test_a_broken_checksum_is_refused(client: Client, topic: str) -> None:
    result = api.produce(client, topic, forged(records("a"), crc=12345))

    assert result.error_code == Errors.CORRUPT_MESSAGE.code
    assert api.fetch(client, topic).high_watermark == 0


def test_a_torn_batch_is_refused(client: Client, topic: str) -> None:
    result = api.produce(client, topic, bytes(records("a").buffer)[:-1])

    assert result.error_code in (Errors.INVALID_RECORD.code, Errors.CORRUPT_MESSAGE.code)


@pytest.mark.parametrize("version", [2, 7, 8, 11])
def test_a_batch_above_max_message_bytes_is_refused(client: Client, version: int) -> None:
    topic = api.create_topic(client, configs={"max.message.bytes": "200"})
    magic = 1 if version < 3 else 2

    small = api.produce(client, topic, records("a" * 50, magic=magic), version=version)
    large = api.produce(client, topic, records("a" * 500, magic=magic), version=version)

    assert small.error_code == 0
    assert large.error_code == Errors.MESSAGE_TOO_LARGE.code


@pytest.mark.parametrize("version", [3, 7, 8, 11])
def test_records_without_a_key_are_named_when_a_compacted_topic_refuses_them(
    client: Client, version: int
) -> None:
    topic = api.create_topic(client, configs={"cleanup.policy": "compact"})
    batch = records(
        SimpleRecord(TIMESTAMP, b"key", b"a"),
        SimpleRecord(TIMESTAMP, None, b"b"),
        SimpleRecord(TIMESTAMP, None, b"c"),
    )

    result = api.produce(client, topic, batch, version=version)

    assert result.error_code == Errors.INVALID_RECORD.code
    assert api.fetch(client, topic).high_watermark == 0
    if version >= _FIRST_VERSION_WITH_RECORD_ERRORS:
        assert [error.batch_index for error in result.record_errors] == [1, 2]
        assert all(error.batch_index_error_message for error in result.record_errors)
        assert result.error_message
    else:
        assert (result.record_errors, result.error_message) == ([], None)


@pytest.mark.parametrize("version", [3, 11])
@pytest.mark.parametrize(
    ("setting", "shift_ms"),
    [
        ("message.timestamp.before.max.ms", -120_000),
        ("message.timestamp.after.max.ms", 120_000),
        ("message.timestamp.difference.max.ms", -120_000),
    ],
)
def test_a_timestamp_out_of_bounds_is_refused(
    client: Client, version: int, setting: str, shift_ms: int
) -> None:
    topic = api.create_topic(client, configs={setting: "60000"})
    now = _now_ms()

    fine = api.produce(client, topic, records("a", timestamp=now), version=version)
    refused = api.produce(
        client,
        topic,
        records(SimpleRecord(now, None, b"a"), SimpleRecord(now + shift_ms, None, b"b")),
        version=version,
    )

    assert fine.error_code == 0
    assert refused.error_code == Errors.INVALID_TIMESTAMP.code
    if version >= _FIRST_VERSION_WITH_RECORD_ERRORS:
        assert [error.batch_index for error in refused.record_errors] == [1]


def test_log_append_time_is_the_brokers_and_is_told(client: Client) -> None:
    topic = api.create_topic(client, configs={"message.timestamp.type": "LogAppendTime"})
    before = _now_ms()

    result = api.produce(client, topic, records("a", "b", timestamp=TIMESTAMP))

    assert before <= result.log_append_time_ms <= _now_ms()
    (batch,) = api.fetched_batches(api.fetch(client, topic))
    assert batch.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert [r.timestamp for r in batch.records()] == [result.log_append_time_ms] * 2


@pytest.mark.parametrize("sent", _CODECS, ids=lambda codec: f"sent-{codec.name}")
@pytest.mark.parametrize("setting", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_compression_type_decides_how_a_batch_is_stored(
    client: Client, setting: str, sent: CompressionType
) -> None:
    topic = api.create_topic(client, configs={"compression.type": setting})
    stored = CompressionType.NONE if setting == "uncompressed" else CompressionType[setting.upper()]

    api.produced(client, topic, records("a" * 50, "b" * 50, codec=sent))

    (batch,) = api.fetched_batches(api.fetch(client, topic))
    assert batch.compression_type is stored
    assert [r.value for r in batch.records()] == [b"a" * 50, b"b" * 50]


def test_the_broker_assigns_offsets_and_the_leader_epoch(client: Client, topic: str) -> None:
    api.produced(client, topic, records("a", "b", leader_epoch=77))
    api.produced(client, topic, records("c", "d"))

    batches = api.fetched_batches(api.fetch(client, topic))

    assert [(b.base_offset, b.last_offset, b.leader_epoch) for b in batches] == [
        (0, 1, 0),
        (2, 3, 0),
    ]
    assert all(batch.is_valid for batch in batches)


def test_a_base_offset_other_than_zero_is_refused(client: Client, topic: str) -> None:
    result = api.produce(client, topic, records("a", offset=700))

    assert result.error_code == Errors.INVALID_RECORD.code


def test_a_megabyte_in_one_record_comes_back_whole(client: Client, topic: str) -> None:
    value = bytes(range(256)) * 4000

    api.produced(client, topic, records(value))

    assert api.fetched_values(api.fetch(client, topic, max_bytes=1)) == [value]


def test_pipelined_produces_are_answered_in_order(client: Client, topic: str) -> None:
    for number in range(20):
        client.send(api.produce_request(topic, records(f"{number}")))

    offsets = [client.receive().responses[0].partition_responses[0].base_offset for _ in range(20)]

    assert offsets == list(range(20))
    assert MemoryRecords(api.fetch(client, topic).records).valid_bytes > 0
