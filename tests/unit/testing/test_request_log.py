import pickle

import pytest

from kafkapy.common.protocol.messages.produce import ProduceRequest
from kafkapy.testing import request_log
from kafkapy.testing.recorded_request import RecordedRequest
from kafkapy.testing.request_log import RequestLog


def recorded(client_id: str = "me", size_in_bytes: int = 10, **values: object) -> RecordedRequest:
    defaults: dict[str, object] = {
        "time_ms": 1,
        "connection_id": "c",
        "api": "Produce",
        "version": 9,
        "body": None,
        "topics": frozenset({"x"}),
        "groups": frozenset(),
    }
    return RecordedRequest(
        client_id=client_id, size_in_bytes=size_in_bytes, **{**defaults, **values}
    )


def test_requests_are_found_by_api_topic_and_client() -> None:
    log = RequestLog()
    produce, fetch = recorded(), recorded("you", api="Fetch", topics=frozenset({"y"}))
    log.add(produce)
    log.add(fetch)

    assert log.requests() == [produce, fetch]
    assert log.requests("Fetch") == log.requests(topic="y") == log.requests(client_id="you")
    assert log.requests("Fetch") == [fetch]
    assert log.requests("Fetch", topic="x") == []
    log.clear()
    assert log.requests() == []


def test_an_api_that_is_none_is_refused_rather_than_never_found() -> None:
    with pytest.raises(ValueError, match="no API 'produce'"):
        RequestLog().requests("produce")


def test_the_oldest_go_when_there_are_too_many(monkeypatch) -> None:
    monkeypatch.setattr(request_log, "_MAX_REQUESTS", 3)
    log = RequestLog()
    requests = [recorded(str(number)) for number in range(5)]

    for request in requests:
        log.add(request)

    assert log.requests() == requests[2:]


def test_the_oldest_go_when_they_are_too_large(monkeypatch) -> None:
    monkeypatch.setattr(request_log, "_MAX_BYTES", 100)
    log = RequestLog()
    requests = [recorded(str(number), 40) for number in range(4)]

    for request in requests:
        log.add(request)

    assert log.requests() == requests[2:]


def test_a_request_travels_between_processes_with_its_body() -> None:
    topic = ProduceRequest.TopicProduceData(
        name="x", partition_data=[ProduceRequest.PartitionProduceData(records=b"abc")]
    )
    request = recorded(body=ProduceRequest(acks=1, timeout_ms=5, topic_data=[topic]))
    request.complete("answered", 2_000_000)

    arrived = pickle.loads(pickle.dumps(request))

    assert isinstance(arrived.body, ProduceRequest)
    (sent,) = arrived.body.topic_data
    assert (sent.name, bytes(sent.partition_data[0].records)) == ("x", b"abc")
    assert str(arrived) == str(request) == "Produce v9; client me; x; answered in 2.0 ms"
