"""Where records begin: guessed or stepped over, always the same."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.common.record.default_record import encode_record
from kafkapy.common.record.record import Header
from kafkapy.pipeline.columnar.record_walk import record_starts

# Zeros, short varints and their like, so that payloads look like records.
bytes_like_framing = st.binary(max_size=12) | st.lists(
    st.sampled_from([b"\0", b"\x02", b"\x0e\0", b"\0\x10\0", b"\0\x80\x01\0"]), max_size=30
).map(b"".join)
payloads = st.none() | bytes_like_framing | st.integers(60, 9000).map(lambda size: b"\0\x04" * size)


@st.composite
def record_bodies(draw: st.DrawFn) -> list[bytes]:
    one = st.builds(
        encode_record,
        st.integers(0, 3),
        st.integers(0, 300),
        payloads,
        payloads,
        st.sampled_from([(), (Header("h", b"\0\x02\0"),)]),
    )
    repeated = st.tuples(one, st.integers(1, 80)).map(lambda pair: [pair[0]] * pair[1])
    return [body for run in draw(st.lists(repeated, max_size=5)) for body in run]


@settings(derandomize=True, deadline=None, max_examples=100)
@given(bodies=record_bodies())
def test_starts_are_where_the_records_before_end(bodies: list[bytes]) -> None:
    content = b"\0" + b"".join(bodies) + b"\0"
    expected = [1]
    for body in bodies:
        expected.append(expected[-1] + len(body))

    found = record_starts(content, begin=1, end=len(content) - 1, count=len(bodies))

    assert found.tolist() == expected


@pytest.mark.parametrize("cut", [1, 2, 60, 119])
def test_missing_bytes_are_noticed(cut: int) -> None:
    content = b"\0" + encode_record(0, 0, b"k", b"v" * 100) * 40
    end = len(content) - cut

    with pytest.raises(ValueError, match="records"):
        record_starts(content[:end] + b"\0", begin=1, end=end, count=41)
