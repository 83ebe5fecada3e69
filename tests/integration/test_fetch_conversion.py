"""Fetch by clients that are older than the records."""

import pytest

from kafkapy.common.compression import CompressionType
from kafkapy.common.errors import Errors
from kafkapy.common.record.record import Header, SimpleRecord
from tests.helpers import api
from tests.helpers.broker import Client
from tests.helpers.records import TIMESTAMP, records

_WRITTEN = [
    SimpleRecord(TIMESTAMP + n, b"k%d" % n, b"v%d" % n, (Header("h", b"x"),)) for n in range(4)
]


def _magic(version: int) -> int:
    return 0 if version <= 1 else 1 if version <= 3 else 2


@pytest.mark.parametrize("version", range(10))
@pytest.mark.parametrize("codec", list(CompressionType)[:4], ids=lambda codec: codec.name)
def test_records_are_converted_to_what_the_version_can_carry(
    client: Client, topic: str, version: int, codec: CompressionType
) -> None:
    api.produced(client, topic, records(*_WRITTEN, codec=codec))
    api.produced(client, topic, records("last", codec=codec))

    data = api.fetch(client, topic, version=version)

    batches = api.fetched_batches(data)
    assert {batch.magic for batch in batches} == {_magic(version)}
    assert {batch.compression_type for batch in batches} == {codec}
    read = [record for batch in batches for record in batch.records()]
    assert [(r.offset, r.key, r.value) for r in read] == [
        *((n, record.key, record.value) for n, record in enumerate(_WRITTEN)),
        (4, None, b"last"),
    ]
    if version >= 2:
        assert [r.timestamp for r in read[:4]] == [record.timestamp for record in _WRITTEN]
    assert data.high_watermark == 5


@pytest.mark.parametrize("version", [0, 2, 3])
@pytest.mark.parametrize("codec", list(CompressionType)[:4], ids=lambda codec: codec.name)
def test_an_old_client_can_read_on_from_any_offset(
    client: Client, topic: str, version: int, codec: CompressionType
) -> None:
    api.produced(client, topic, records(*_WRITTEN, codec=codec))
    api.produced(client, topic, records(*_WRITTEN, codec=codec))

    for offset in range(8):
        read = api.fetched_records(api.fetch(client, topic, offset, version=version))
        assert [r.offset for r in read if r.offset >= offset] == list(range(offset, 8))


@pytest.mark.parametrize("version", [0, 1, 2, 3, 4, 9])
def test_a_zstd_topic_cannot_be_read_below_version_10(client: Client, version: int) -> None:
    topic = api.create_topic(client, configs={"compression.type": "zstd"})
    api.produced(client, topic, records("a"))

    data = api.fetch(client, topic, version=version)

    assert data.error_code == Errors.UNSUPPORTED_COMPRESSION_TYPE.code
    assert len(data.records or b"") == 0


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_zstd_batches_of_a_producer_cannot_be_converted(
    client: Client, topic: str, version: int
) -> None:
    api.produced(client, topic, records("a", codec=CompressionType.ZSTD))

    data = api.fetch(client, topic, version=version)

    assert data.error_code == Errors.UNSUPPORTED_COMPRESSION_TYPE.code


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_an_old_client_reads_up_to_the_first_zstd_batch(
    client: Client, topic: str, version: int
) -> None:
    api.produced(client, topic, records("a", "b"))
    api.produced(client, topic, records("c", codec=CompressionType.ZSTD))

    before = api.fetch(client, topic, version=version)
    at_zstd = api.fetch(client, topic, 2, version=version)

    assert before.error_code == Errors.NONE.code
    assert [record.value for record in api.fetched_records(before)] == [b"a", b"b"]
    assert at_zstd.error_code == Errors.UNSUPPORTED_COMPRESSION_TYPE.code


@pytest.mark.parametrize("version", [10, 12, 17])
def test_zstd_is_read_from_version_10(client: Client, version: int) -> None:
    topic = api.create_topic(client, configs={"compression.type": "zstd"})
    api.produced(client, topic, records("a"))

    assert api.fetched_values(api.fetch(client, topic, version=version)) == [b"a"]


@pytest.mark.parametrize("version", [0, 3])
def test_conversion_can_be_turned_off(client: Client, version: int) -> None:
    topic = api.create_topic(client, configs={"message.downconversion.enable": "false"})
    api.produced(client, topic, records("a"))

    refused = api.fetch(client, topic, version=version)

    assert refused.error_code == Errors.UNSUPPORTED_VERSION.code
    assert api.fetched_values(api.fetch(client, topic, version=4)) == [b"a"]


@pytest.mark.parametrize("version", [2, 3])
def test_a_waiting_fetch_of_an_old_client_is_converted_too(
    client: Client, topic: str, version: int
) -> None:
    client.send(api.fetch_request(api.fetch_topic(topic, {0: 0}), max_wait_ms=200), version)

    (answer,) = client.receive().responses

    assert (answer.partitions[0].error_code, len(answer.partitions[0].records or b"")) == (0, 0)
