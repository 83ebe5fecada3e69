"""The segments of a broker's log directory hold the rows that its consumers get."""

from kafkapy.testing import EmbeddedBroker
from tests.helpers.segment_rows import segment_rows
from tests.helpers.written_topics import CONFIGS, consumed, written_topic


def test_rows_are_a_consumer_s_while_the_broker_runs_and_after() -> None:
    with EmbeddedBroker() as broker:
        broker.create_topic("orders", partitions=2, configs=CONFIGS)
        with written_topic(broker.bootstrap_servers, "orders", partitions=2):
            expected = {
                isolation: consumed(broker.bootstrap_servers, "orders", isolation)
                for isolation in ("read_uncommitted", "read_committed")
            }
            live = {
                isolation: segment_rows(
                    broker.log_dir,
                    topic="orders",
                    isolationLevel=isolation,
                    splitBytes=1500,
                    respectHighWatermark=False,  # its checkpoint is a few seconds old
                )
                for isolation in expected
            }
            broker.restart(clean=False)
            crashed = {
                isolation: segment_rows(
                    broker.log_dir,
                    topicPattern="ord.*",
                    isolationLevel=isolation,
                    respectHighWatermark=False,
                )
                for isolation in expected
            }

    assert live == expected
    assert crashed == expected
    assert len(expected["read_uncommitted"]) > len(expected["read_committed"]) > 300
