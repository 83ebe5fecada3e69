import argparse

import pytest

from kafkapy.common.errors import NetworkError
from kafkapy.common.protocol.messages.fetch import FetchRequest, FetchResponse
from kafkapy.common.protocol.schema import Message
from kafkapy.common.types import TopicPartition
from kafkapy.metadata.broker import Node
from kafkapy.tools.kafka_replica_verification import ReplicaVerification
from tests.helpers.mock_time import MockTime
from tests.helpers.records import records

_PARTITION = TopicPartition("t", 0)
_OPTIONS = argparse.Namespace(max_wait_ms=100, fetch_size=1000, report_interval_ms=1000)


class _Replica:
    """Answers every fetch with the same records, or not at all."""

    def __init__(self, *values: str, base_offset: int = 0, high_watermark: int = 10) -> None:
        self._data = bytes(records(*values, offset=base_offset).buffer) if values else b""
        self._high_watermark = high_watermark
        self.asked_for: list[int] = []
        self.is_down = False

    def send_and_receive(self, request: Message, version: int) -> Message:
        if self.is_down:
            raise NetworkError("no connection")
        assert isinstance(request, FetchRequest)
        self.asked_for.append(request.topics[0].partitions[0].fetch_offset)
        data = FetchResponse.PartitionData(
            partition_index=0, high_watermark=self._high_watermark, records=self._data
        )
        topic = FetchResponse.FetchableTopicResponse(topic="t", partitions=[data])
        return FetchResponse(responses=[topic])


def _verification(time: MockTime, *replicas: _Replica) -> ReplicaVerification:
    nodes = [Node(number, "localhost", 9092 + number) for number in range(len(replicas))]
    return ReplicaVerification(
        _OPTIONS,
        {_PARTITION: nodes},
        offsets={_PARTITION: 0},
        clients=dict(zip(nodes, replicas, strict=True)),
        time=time,
    )


def test_equal_replicas_are_followed_and_their_lag_reported(
    time: MockTime, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = _Replica("a", "b"), _Replica("a", "b")
    verification = _verification(time, first, second)

    assert verification.verify_once()
    assert verification.verify_once()
    time.sleep(1001)
    verification.maybe_report()
    verification.maybe_report()

    assert first.asked_for == second.asked_for == [0, 2]
    (line,) = capsys.readouterr().out.splitlines()
    assert line.endswith(": max lag is 8 for partition t-0 at offset 2 among 1 partitions")


def test_different_contents_are_told_by_their_checksums(
    time: MockTime, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _verification(time, _Replica("a"), _Replica("b")).verify_once()

    said = capsys.readouterr().out
    assert "partition t-0 has unmatched checksum at offset 0; replica 0's checksum" in said


def test_different_offsets_end_the_verification(
    time: MockTime, capsys: pytest.CaptureFixture[str]
) -> None:
    verification = _verification(time, _Replica("a"), _Replica("a", base_offset=3))

    assert not verification.verify_once()

    said = capsys.readouterr().out
    assert "partition t-0: replica 0's offset 0 doesn't match replica 1's offset 3" in said


def test_a_replica_that_is_behind_holds_up_the_others(time: MockTime) -> None:
    first, behind = _Replica("a", "b"), _Replica()
    verification = _verification(time, first, behind)

    assert verification.verify_once()
    assert verification.verify_once()

    assert first.asked_for == [0, 0]


def test_a_replica_that_cannot_be_read_is_named_and_waited_for(
    time: MockTime, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = _Replica("a"), _Replica("a")
    second.is_down = True
    verification = _verification(time, first, second)

    assert verification.verify_once()

    assert capsys.readouterr().err == "Replica 1 cannot be read: no connection\n"
    second.is_down = False
    assert verification.verify_once()
    assert first.asked_for == [0, 0]
