"""The examples of docs/pipeline.md run as they stand, one after the other.

Those that need a broker with TLS and SASL are in test_security.py.
"""

import re
from typing import Any

from pyspark.sql import SparkSession

from kafkapy.pipeline.segments import segment_options
from kafkapy.pipeline.sink import kafka_sink_options
from kafkapy.pipeline.source import kafka_source_options
from kafkapy.testing.broker_process import BrokerProcess
from tests.helpers.spark import needs_limits
from tests.pipeline.pipeline_document import DOCUMENT, SECURITY, examples, sections

TOPICS = ("orders", "orders-in-capitals")


@needs_limits
def test_the_examples_work(spark: SparkSession, spark_broker: BrokerProcess) -> None:
    for topic in TOPICS:
        spark_broker.create_topic(topic)
    shared: dict[str, Any] = {}

    for example in examples(other_than=SECURITY):
        code = example.replace("127.0.0.1:9092", spark_broker.bootstrap_servers)
        code = code.replace("/tmp/kafkapy-logs", str(spark_broker.log_dir))
        exec(compile(code, str(DOCUMENT), "exec"), shared)

    for topic in TOPICS:
        spark_broker.delete_topic(topic)


def test_every_option_is_described() -> None:
    tables = {title: _first_cells(text) for title, text in sections().items()}
    declared = {
        "Reading a topic": {
            *kafka_source_options._OWN_OPTIONS,
            *kafka_source_options._OFFICIAL_OPTIONS,
        },
        "Writing a topic": {*kafka_sink_options._OWN},
        # load() has its path, and sets `paths` for several.
        "Log files": {*segment_options._OPTIONS} - {"path", "paths"},
    }

    for section, options in declared.items():
        assert options <= tables[section], section


def _first_cells(section: str) -> set[str]:
    """What is set as code in the first cell of a table's rows."""
    cells = re.findall(r"^\| ([^|]*)\|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`([^`]+)`", cell)}
