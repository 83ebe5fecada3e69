"""A streaming job whose driver is killed: every row is in its topic once.

bin/soak spark-driver-kills does it for longer, at random moments too, and with Parquet beside the
topic.
"""

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from kafkapy.testing.broker_process import BrokerProcess
from tests.pipeline.crashing_sink import AFTER_COMMIT, BETWEEN_ENDS
from tests.pipeline.streaming_copy import KilledCopy


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_driver_killed_within_and_after_the_commit_copies_each_row_once(
    spark: SparkSession, spark_broker: BrokerProcess, tmp_path: Path
) -> None:
    killed = KilledCopy(spark_broker, tmp_path, with_parquet=False)
    for point in (BETWEEN_ENDS, AFTER_COMMIT):
        killed.feed()
        killed.live_and_die(point, random.Random(0))

    killed.finish(spark)
