"""Apache Kafka's log directory, read from Spark's side: the rows that a consumer gets."""

from pathlib import Path

from tests.compat.brokers import start_apache
from tests.compat.confluent_client import ConfluentAdmin
from tests.compat.tools import require_jars
from tests.helpers.segment_rows import segment_rows
from tests.helpers.written_topics import CONFIGS, consumed, written_topic


def test_rows_of_apache_kafka_s_segments_are_a_consumer_s(tmp_path: Path) -> None:
    require_jars()
    broker = start_apache(tmp_path)
    assert broker.log_dir is not None
    try:
        ConfluentAdmin(broker.bootstrap).create_topic("orders", 2, CONFIGS)
        with written_topic(broker.bootstrap, "orders", partitions=2):
            levels = ("read_uncommitted", "read_committed")
            expected = {each: consumed(broker.bootstrap, "orders", each) for each in levels}
            live = {
                each: segment_rows(
                    broker.log_dir,
                    topic="orders",
                    isolationLevel=each,
                    splitBytes=1500,
                    respectHighWatermark=False,
                )
                for each in levels
            }
    finally:
        broker.stop()

    assert live == expected
    # The open transaction was aborted in the end, and the high watermark is known now.
    stopped = segment_rows(broker.log_dir, topic="orders", isolationLevel="read_committed")
    decided = [row for row in stopped if row not in expected["read_committed"]]
    assert [row[1] for row in decided] == [b"behind the open transaction"]
    assert len(stopped) == len(expected["read_committed"]) + 1
