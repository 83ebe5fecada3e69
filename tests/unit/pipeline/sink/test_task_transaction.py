"""How the transactions of a batch are written down."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkapy.pipeline.pipeline_errors import CorruptDataError
from kafkapy.pipeline.sink.task_transaction import (
    TaskTransaction,
    decode_transactions,
    encode_transactions,
)

OFFSET_METADATA_MAX_BYTES = 4096

transactions = st.builds(
    TaskTransaction,
    partition=st.integers(0, 10_000),
    attempt=st.integers(0, 3),
    producer_id=st.integers(0, 2**62),
    epoch=st.integers(0, 32767),
)


@given(st.lists(transactions, min_size=1, max_size=20))
@settings(max_examples=50, derandomize=True)
def test_what_is_written_down_is_read_back_in_order(listed: list[TaskTransaction]) -> None:
    assert decode_transactions(encode_transactions(listed)) == tuple(sorted(listed))


def test_text_is_as_documented() -> None:
    listed = [TaskTransaction(7 + i, 0, 4000 + i, 3) for i in range(4)]
    listed.append(TaskTransaction(12, 1, 3990, 0))

    assert encode_transactions(listed) == "v1;+7+1x3+2;+0x4+1;+4000+1x3-13;+3+0x3-3"


def test_a_thousand_tasks_fit_even_when_their_ids_are_not_in_order() -> None:
    listed = [TaskTransaction(i, 0, 10_000 + i * 7 % 1000, 5) for i in range(1000)]

    assert len(encode_transactions(listed)) < OFFSET_METADATA_MAX_BYTES


@pytest.mark.parametrize(
    "text",
    [
        "",
        "v1",
        "v2;+1;+0;+1;+0",
        "v1;+1;+0;+1",
        "v1;+1;+0;+1;+0;+0",
        "v1;+1x2;+0;+1;+0",
        "v1;1;0;1;0",
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(CorruptDataError, match="not a list of transactions"):
        decode_transactions(text)


def test_attempts_of_a_task_have_ids_of_their_own() -> None:
    first, second = TaskTransaction(3, 0, 70, 1), TaskTransaction(3, 1, 71, 0)

    assert first.prepared("sink-q") == ("sink-q-3", 70, 1)
    assert second.prepared("sink-q") == ("sink-q-3-1", 71, 0)
