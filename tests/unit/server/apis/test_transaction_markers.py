from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkapy.common.errors import Errors
from kafkapy.common.protocol.api_keys import ApiKeys
from kafkapy.common.protocol.headers import RequestHeader
from kafkapy.common.protocol.messages.write_txn_markers import (
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafkapy.common.types import CONSUMER_OFFSETS_TOPIC, TopicPartition
from kafkapy.network.request_channel import Request, RequestContext
from kafkapy.server.apis.transaction_markers import TransactionMarkersHandler
from tests.helpers.mock_time import MockTime
from tests.unit.replication.harness import TP, ReplicaHarness

OFFSETS = TopicPartition(CONSUMER_OFFSETS_TOPIC, 0)
PRODUCER = 7


class FakeGroupCoordinator:
    """Completes when the test says so."""

    def __init__(self) -> None:
        self.completions: list = []

    def schedule_handle_txn_completion(self, producer_id, partitions, result, *, on_complete):
        self.completions.append((producer_id, list(partitions), on_complete))


class FakeRequestChannel:
    def __init__(self) -> None:
        self.responses: list[WriteTxnMarkersResponse] = []

    def send_response(self, request, response) -> None:
        self.responses.append(response)


class Markers:
    def __init__(self, directory: Path, time: MockTime) -> None:
        self.replicas = ReplicaHarness(directory, time)
        self.replicas.lead(TP)
        self.replicas.lead(OFFSETS)
        self.groups = FakeGroupCoordinator()
        self.channel = FakeRequestChannel()
        self.handler = TransactionMarkersHandler(
            self.channel,
            self.replicas.replica_manager,
            self.groups,
            time=time,
            request_timeout_ms=1000,
        )

    def write(self, *partitions: TopicPartition, producer_epoch: int = 0) -> None:
        body = WriteTxnMarkersRequest(
            markers=[
                WriteTxnMarkersRequest.WritableTxnMarker(
                    producer_id=PRODUCER,
                    producer_epoch=producer_epoch,
                    transaction_result=True,
                    topics=[
                        WriteTxnMarkersRequest.WritableTxnMarkerTopic(
                            name=topic, partition_indexes=[partition]
                        )
                        for topic, partition in partitions
                    ],
                )
            ]
        )
        header = RequestHeader(
            api_key=ApiKeys.WRITE_TXN_MARKERS, api_version=1, correlation_id=1, client_id="c"
        )
        self.handler.handle_write_txn_markers(
            Request(RequestContext(header, "connection", "127.0.0.1"), body)
        )

    def answered(self) -> dict[str, Errors]:
        (response,) = self.channel.responses
        (marker,) = response.markers
        return {
            topic.name: Errors.for_code(partition.error_code)
            for topic in marker.topics
            for partition in topic.partitions
        }


@pytest.fixture
def markers(tmp_path: Path, time: MockTime) -> Iterator[Markers]:
    markers = Markers(tmp_path, time)
    yield markers
    markers.replicas.close()


def test_markers_of_other_topics_are_answered_when_they_are_written(markers: Markers) -> None:
    markers.write(TP)

    assert markers.answered() == {TP.topic: Errors.NONE}
    assert markers.groups.completions == []


def test_marker_in_the_offsets_topic_is_answered_when_groups_have_taken_the_offsets_over(
    markers: Markers,
) -> None:
    markers.write(TP, OFFSETS)

    assert markers.channel.responses == []
    ((producer_id, partitions, on_complete),) = markers.groups.completions
    assert (producer_id, partitions) == (PRODUCER, [OFFSETS])
    on_complete(None)

    assert markers.answered() == {TP.topic: Errors.NONE, CONSUMER_OFFSETS_TOPIC: Errors.NONE}


def test_groups_that_fail_are_told_of_for_their_partition_only(markers: Markers) -> None:
    markers.write(TP, OFFSETS)

    markers.groups.completions[0][2](RuntimeError("no"))

    assert markers.answered() == {
        TP.topic: Errors.NONE,
        CONSUMER_OFFSETS_TOPIC: Errors.UNKNOWN_SERVER_ERROR,
    }


def test_marker_that_is_not_written_completes_nothing(markers: Markers) -> None:
    elsewhere = TopicPartition(CONSUMER_OFFSETS_TOPIC, 1)

    markers.write(elsewhere)

    assert markers.answered() == {CONSUMER_OFFSETS_TOPIC: Errors.UNKNOWN_TOPIC_OR_PARTITION}
    assert markers.groups.completions == []


def test_marker_without_an_epoch_is_refused_where_the_producer_is_unknown(markers: Markers) -> None:
    markers.write(TP, producer_epoch=-1)

    assert markers.answered() == {TP.topic: Errors.INVALID_PRODUCER_EPOCH}
    log = markers.replicas.replica_manager.get_log(TP)
    assert log is not None
    assert log.log_end_offset == 0
    assert not log.active_producers()
