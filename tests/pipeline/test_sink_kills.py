"""A streaming job whose driver dies after its sink's commit, before Spark's own: each row is in
its topic once.

The other points of a commit are in tests/integration/pipeline/test_sink_exactly_once.py, without
Spark; bin/soak spark-driver-kills kills at all of them and at random, with Parquet beside it.
"""

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkapy.testing.broker_process import BrokerProcess
from tests.helpers.spark import needs_limits
from tests.pipeline.crashing_sink import AFTER_COMMIT
from tests.pipeline.streaming_copy import KilledCopy


@pytest.mark.slow
@pytest.mark.timeout(900)
@needs_limits
def test_driver_killed_after_the_commit_copies_each_row_once(
    spark: SparkSession, spark_broker: BrokerProcess, tmp_path: Path
) -> None:
    killed = KilledCopy(spark_broker, tmp_path, with_parquet=False)
    killed.feed()
    killed.live_and_die(AFTER_COMMIT, random.Random(0))

    killed.finish(spark)
