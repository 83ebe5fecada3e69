"""Each row of a stream once, whatever fails and is tried again: without Spark, step by step."""

from collections.abc import Callable, Iterator

import pytest
from pyspark.sql.types import StructType

from kafkapy.pipeline.pipeline_errors import OptionError, PipelineError
from kafkapy.testing import EmbeddedBroker
from tests.helpers.waiting import wait_until
from tests.integration.pipeline.spark_role import StreamingQuery, committed_values

BEFORE = ([b"a0", b"a1"], [b"a2"])
BATCH = ([b"b0"], [b"b1", b"b2"], [b"b3"])
AFTER = ([b"c0"], [])
ALL = sorted(value for batch in (BEFORE, BATCH, AFTER) for task in batch for value in task)


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


@pytest.fixture
def query(broker: EmbeddedBroker, request: pytest.FixtureRequest) -> Iterator[StreamingQuery]:
    topic = request.node.name.replace("[", "-").replace("]", "")[:100]
    broker.create_topic(topic, partitions=2)
    yield StreamingQuery(broker, topic)
    broker.faults.clear()


def crash_after_write(query: StreamingQuery) -> None:
    query.write(1, *BATCH)


def crash_after_one_task(query: StreamingQuery) -> None:
    query.write_task(1, 0, BATCH[0])


def fail_commit(query: StreamingQuery, *, nth_end: int) -> list:
    messages = query.write(1, *BATCH)
    query.broker.faults.on("EndTxn").nth(nth_end).always().error("UNKNOWN_SERVER_ERROR")
    with pytest.raises(PipelineError, match="not committed yet"):
        query.commit(1, messages)
    query.broker.faults.clear()
    return messages


def crash_after_decision(query: StreamingQuery) -> None:
    fail_commit(query, nth_end=1)


def crash_between_two_ends(query: StreamingQuery) -> None:
    fail_commit(query, nth_end=2)


def crash_after_commit(query: StreamingQuery) -> None:
    query.run(1, *BATCH)


def failure_after_decision(query: StreamingQuery) -> None:
    query.abort(1, fail_commit(query, nth_end=1))


def failure_between_two_ends(query: StreamingQuery) -> None:
    query.abort(1, fail_commit(query, nth_end=2))


def failure_of_the_decision(query: StreamingQuery) -> None:
    messages = query.write(1, *BATCH)
    query.broker.faults.on("OffsetCommit").error("GROUP_AUTHORIZATION_FAILED")
    with pytest.raises(Exception, match="group"):
        query.commit(1, messages)
    query.abort(1, messages)
    assert query.open_transactions() == set()


def failed_task(query: StreamingQuery) -> None:
    message = query.write_task(1, 0, BATCH[0])
    query.write_task(1, 1, BATCH[1])  # killed, so that its message is lost
    query.abort(1, [message, None])
    assert query.open_transactions() == set()


@pytest.mark.parametrize(
    "interrupt",
    [
        crash_after_one_task,
        crash_after_write,
        crash_after_decision,
        crash_between_two_ends,
        crash_after_commit,
        failed_task,
        failure_of_the_decision,
        failure_after_decision,
        failure_between_two_ends,
    ],
)
def test_batch_that_is_tried_again_is_written_once(
    query: StreamingQuery, interrupt: Callable[[StreamingQuery], None]
) -> None:
    query.run(0, *BEFORE)
    interrupt(query)

    query.run(1, *BATCH)
    query.run(2, *AFTER)

    assert query.committed() == ALL
    assert query.open_transactions() == set()


def test_nothing_is_seen_before_the_commit(query: StreamingQuery) -> None:
    messages = query.write(0, *BATCH)

    assert query.committed() == []
    assert query.open_transactions() == {"0", "1", "2"}
    query.commit(0, messages)
    assert query.committed() == [b"b0", b"b1", b"b2", b"b3"]


def test_transactions_of_tasks_that_are_no_more_are_aborted(query: StreamingQuery) -> None:
    query.write(0, *BATCH)

    query.run(0, [b"b0", b"b1", b"b2", b"b3"])

    assert query.committed() == [b"b0", b"b1", b"b2", b"b3"]
    assert query.open_transactions() == set()


def test_task_without_rows_opens_no_transaction_and_such_a_batch_needs_no_decision(
    query: StreamingQuery,
) -> None:
    messages = query.write(0, [], [])
    assert query.open_transactions() == set()

    query.commit(0, messages)

    assert query.job not in query.broker.groups()


def test_second_attempt_of_a_task_replaces_the_first(query: StreamingQuery) -> None:
    first = query.write_task(0, 0, [b"v"])
    second = query.write_task(0, 0, [b"v"], attempt=1)
    assert query.open_transactions() == {"0", "0-1"}

    # Spark takes whichever ends first, and may still be running the other.
    query.commit(0, [first])

    assert query.committed() == [b"v"]
    assert query.open_transactions() == set()
    with pytest.raises(PipelineError, match=r"0-1 ended before"):
        query.commit(1, [second])


def test_checkpoint_that_is_older_than_the_topic_is_refused(query: StreamingQuery) -> None:
    for batch_id in range(3):
        query.run(batch_id, [b"%d" % batch_id])

    with pytest.raises(PipelineError, match=r"batch 1 of .*: batch 2 was committed already"):
        query.write(1, [b"1"])

    assert query.committed() == [b"0", b"1", b"2"]


def test_two_drivers_with_one_checkpoint_do_not_both_commit(query: StreamingQuery) -> None:
    written_by_one = query.write(0, *BATCH)
    query.run(0, *BATCH)

    with pytest.raises(PipelineError, match="ended before they could be committed"):
        query.commit(0, written_by_one)
    mixed = [query.write_task(0, 0, BATCH[0]), written_by_one[1]]
    with pytest.raises(PipelineError, match="two queries use its checkpoint"):
        query.commit(0, mixed)

    assert query.committed() == [b"b0", b"b1", b"b2", b"b3"]


@pytest.mark.parametrize("api", ["OffsetCommit", "EndTxn", "DescribeTransactions", "OffsetFetch"])
def test_lost_answers_and_moved_coordinators_are_asked_again(
    query: StreamingQuery, api: str
) -> None:
    query.broker.faults.on(api).drop_response()
    query.broker.faults.on(api).error("NOT_COORDINATOR")
    query.broker.faults.on(api).error("COORDINATOR_LOAD_IN_PROGRESS")

    query.run(0, *BATCH)

    query.broker.faults.assert_all_fired()
    assert query.committed() == [b"b0", b"b1", b"b2", b"b3"]


def test_decision_lists_topic_partition_batch_and_transactions(query: StreamingQuery) -> None:
    query.run(6, *BATCH)

    offsets = query.broker.groups()[query.job].offsets
    assert offsets == {(query.topic, 0): 7}


# Time-outs


def expire_transactions(query: StreamingQuery) -> None:
    query.broker.time.advance(minutes=16)
    wait_until(lambda: not query.open_transactions())


def test_transaction_that_timed_out_before_the_decision_fails_the_batch_alone(
    query: StreamingQuery,
) -> None:
    messages = query.write(0, *BATCH)
    expire_transactions(query)

    with pytest.raises(PipelineError, match=f"{query.job}-0, .*nothing is committed"):
        query.commit(0, messages)
    query.abort(0, messages)
    query.run(0, *BATCH)

    assert query.committed() == [b"b0", b"b1", b"b2", b"b3"]


def test_decided_batch_that_timed_out_as_a_whole_is_written_anew(query: StreamingQuery) -> None:
    query.run(0, *BEFORE)
    crash_after_decision(query)
    expire_transactions(query)

    with pytest.raises(PipelineError, match=f"batch 1 of {query.job}.*start the query again"):
        query.run(1, *BATCH)
    query.run(1, *BATCH)
    query.run(2, *AFTER)

    assert query.committed() == ALL


def test_decided_batch_that_timed_out_in_part_is_an_error_for_good(query: StreamingQuery) -> None:
    crash_between_two_ends(query)
    expire_transactions(query)

    for _ in range(2):
        with pytest.raises(PipelineError, match="in part only") as told:
            query.run(1, *BATCH)
        missing = {f"{query.job}-{task}" for task in range(3)}
        assert len([name for name in missing if name in str(told.value)]) == 2


# Limits


def test_decision_is_kept_with_the_first_of_the_topics(broker: EmbeddedBroker) -> None:
    for topic in ("t-a", "t-b", "t-c"):
        broker.create_topic(topic)
    query = StreamingQuery(
        broker, "t-b", StructType().add("topic", "string").add("value", "string")
    )

    query.run(0, [("t-c", "v")], [("t-b", "v"), ("t-c", "w")])
    query.run(1, [("t-c", "x")])
    messages = query.write(2, [("t-a", "y")])
    query.commit(2, messages)
    query.run(2, [("t-a", "y")])

    assert query.broker.groups()[query.job].offsets == {("t-a", 0): 3, ("t-b", 0): 1, ("t-c", 0): 2}
    for topic, values in {"t-a": [b"y"], "t-b": [b"v"], "t-c": [b"v", b"w", b"x"]}.items():
        assert committed_values(broker, topic) == values


def test_transaction_timeout_beyond_the_brokers_is_told(query: StreamingQuery) -> None:
    query.options["kafka.transaction.timeout.ms"] = "3600000"

    with pytest.raises(OptionError, match=r"kafka.transaction.timeout.ms: 3600000 is more than"):
        query.write(0, [b"v"])


def test_more_tasks_than_can_be_written_down_are_refused() -> None:
    with EmbeddedBroker({"offset.metadata.max.bytes": "20"}) as broker:
        broker.create_topic("t")
        query = StreamingQuery(broker, "t")
        messages = query.write(0, [b"v"], [b"w"])

        with pytest.raises(PipelineError, match="transactions of 2 tasks take"):
            query.commit(0, messages)
        query.abort(0, messages)

        assert query.committed() == []
        assert query.open_transactions() == set()
