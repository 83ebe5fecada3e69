"""The options of the segment source: what is wrong is named."""

import pickle
from typing import Any

import pytest

from kafkapy.common.types import TopicPartition
from kafkapy.pipeline.pipeline_errors import OptionError
from kafkapy.pipeline.segments.segment_options import OffsetBound, SegmentOptions, View


def options(**given: str) -> SegmentOptions:
    return SegmentOptions.of({"path": "/logs"} | given)


def test_defaults() -> None:
    found = options()

    assert found == SegmentOptions(
        ("/logs",), None, None, None, start=OffsetBound({}), end=OffsetBound({})
    )
    assert pickle.loads(pickle.dumps(found)) == found
    assert found.split_bytes == 64 * 1024 * 1024


def test_names_are_taken_in_any_case() -> None:
    found = options(CHECKCRCS="FALSE", isolationlevel="Read_Committed", View="batches")

    assert (found.check_crcs, found.read_committed, found.view) == (False, True, View.BATCHES)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"path": "/a, /b c"}, ("/a", "/b c")),
        ({"path": "file:///a%20b"}, ("/a b",)),
        ({"path": "file:/a"}, ("/a",)),
        ({"paths": '["/a", "/b"]'}, ("/a", "/b")),
    ],
)
def test_paths(given: dict[str, str], expected: tuple[str, ...]) -> None:
    assert SegmentOptions.of(given).paths == expected


def test_offsets_of_partitions_and_sentinels() -> None:
    found = options(
        startingOffsets='{"orders":{"0":23,"1":-2}}',
        endingOffsets='{"orders":{"0":-1,"1":40}}',
        endingTimestamp="1700000000000",
    )

    assert found.start == OffsetBound({TopicPartition("orders", 0): 23})
    assert found.end == OffsetBound({TopicPartition("orders", 1): 40}, 1_700_000_000_000)


@pytest.mark.parametrize(
    ("given", "wanted", "unwanted"),
    [
        ({"topic": "orders, audit"}, [("orders", 1), ("audit", 0)], [("orders2", 0)]),
        ({"topicPattern": "ord.*"}, [("orders", 1)], [("disorder", 0), ("audit", 1)]),
        ({"partitions": "0,2"}, [("orders", 0), ("audit", 2)], [("orders", 1)]),
        ({"topic": "orders", "partitions": "1"}, [("orders", 1)], [("orders", 0), ("audit", 1)]),
    ],
)
def test_filters(
    given: dict[str, str], wanted: list[tuple[str, int]], unwanted: list[tuple[str, int]]
) -> None:
    found = options(**given)

    assert [found.wants(TopicPartition(*each)) for each in wanted] == [True] * len(wanted)
    assert [found.wants(TopicPartition(*each)) for each in unwanted] == [False] * len(unwanted)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"startingOffset": "1"}, "startingOffset: there is no such option; there are path"),
        ({"path": " , "}, r"path: give load\(\) a log directory"),
        ({"path": "s3://bucket/logs"}, "path: s3://bucket/logs is not on a local disk"),
        ({"paths": "/a"}, "paths: it is not a JSON list"),
        ({"topic": "a", "topicPattern": "b"}, "topicPattern: it cannot be given together"),
        ({"topicPattern": "("}, r"topicPattern: '\(' is not a pattern"),
        ({"partitions": "0,-1"}, "partitions: '-1' is not a partition's number"),
        ({"startingOffsets": "latest"}, "startingOffsets: it cannot be latest"),
        ({"endingOffsets": "earliest"}, "endingOffsets: it cannot be earliest"),
        ({"startingOffsets": '{"a":5}'}, "startingOffsets: a: expected a number for each"),
        ({"startingOffsets": '{"a":{"x":5}}'}, "startingOffsets: a: 'x' is no partition"),
        ({"startingOffsets": '{"a":{"0":-1}}'}, "startingOffsets: a-0: it cannot be -1"),
        ({"endingOffsets": '{"a":{"0":-2}}'}, "endingOffsets: a-0: it cannot be -2"),
        ({"endingOffsets": "0"}, "endingOffsets: expected JSON like"),
        ({"startingTimestamp": "now"}, "startingTimestamp: 'now' is not a time in milliseconds"),
        ({"endingTimestamp": "-5"}, "endingTimestamp: '-5' is not a time in milliseconds"),
        (
            {"isolationLevel": "x"},
            "isolationLevel: 'x' is none of read_uncommitted, read_committed",
        ),
        ({"checkCrcs": "yes"}, "checkCrcs: 'yes' is neither true nor false"),
        ({"splitBytes": "64m"}, "splitBytes: '64m' is not a number of bytes above 0"),
        ({"view": "files"}, "view: 'files' is none of records, batches"),
    ],
)
def test_bad_options_are_named(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        options(**given)
