from kafkapy.testing.recorded_request import RecordedRequest
from kafkapy.testing.timeline import GroupView, timeline
from kafkapy.testing.topic_reader import StoredRecord


def request(time_ms: int, api: str, **values: object) -> RecordedRequest:
    recorded = RecordedRequest(
        **{
            "time_ms": time_ms,
            "client_id": "c",
            "connection_id": "",
            "api": api,
            "version": 3,
            "body": None,
            "size_in_bytes": 1,
            "topics": frozenset({"x"}),
            "groups": frozenset(),
            **values,
        }
    )
    recorded.complete("answered", 1_000_000)
    return recorded


def test_what_concerns_a_topic_and_its_groups_is_told_in_order() -> None:
    nothing: frozenset[str] = frozenset()
    of_group = {"topics": nothing, "groups": frozenset({"g"})}
    requests = [
        request(1_000, "Produce"),
        request(1_500, "Fetch"),
        request(1_600, "Fetch"),
        request(1_700, "JoinGroup", **of_group),
        request(1_800, "Heartbeat", **of_group),
        request(1_900, "Produce", topics=frozenset({"y"})),
        request(2_000, "OffsetCommit", groups=frozenset({"g"})),
    ]
    records = [StoredRecord("x", 0, 4, 0, b"k", None, (("h", b"1"),))]
    groups = {"g": GroupView("Stable", ("c",), {("x", 0): 4}), "h": GroupView("Empty")}

    told = timeline("x", requests=requests, records=records, groups=groups)

    assert told.splitlines() == [
        "requests about x:",
        "  +0.000 s Produce v3; client c; x; answered in 1.0 ms",
        "  +0.500 s Fetch v3; client c; x; answered in 1.0 ms (and 1 more like it)",
        "  +0.700 s JoinGroup v3; client c; group g; answered in 1.0 ms",
        "  +1.000 s OffsetCommit v3; client c; x, group g; answered in 1.0 ms",
        "records of x: 1",
        "  x-0@4: b'k' = None {'h': b'1'}",
        "groups:",
        "  g: Stable; members: c; committed: x-0@4",
        "  h: Empty; members: none; committed: -",
    ]


def test_a_long_story_is_cut_at_its_beginning() -> None:
    requests = [request(n, "Produce" if n % 2 else "Metadata") for n in range(100)]
    records = [StoredRecord("x", 0, n, 0, None, b"v", ()) for n in range(30)]

    told = timeline("x", requests=requests, records=records, groups={}).splitlines()

    assert told[1] == "  … 40 earlier ones"
    assert told[62:64] == ["records of x: 30", "  … 10 earlier ones"]
    assert told[-1] == "groups: none"


def test_a_topic_nobody_asked_about_has_no_story() -> None:
    assert timeline("x", requests=[], records=[], groups={}).splitlines() == [
        "requests about x:",
        "  none",
        "records of x: 0",
        "groups: none",
    ]


def test_large_records_are_cut_short_and_every_header_is_shown() -> None:
    large = StoredRecord("x", 0, 0, 0, b"k" * 200, bytes(1_000_000), (("h", b"1"), ("h", None)))

    told = str(large)

    assert f"{b'k' * 200!r} = " in told
    assert told.endswith(r"\x00'… (1000000 bytes) {'h': b'1', 'h': None}")
    assert len(told) < 2_000
