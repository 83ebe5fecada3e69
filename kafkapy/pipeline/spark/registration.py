"""The data sources by their names, in one Spark session."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

from kafkapy.pipeline.kafka_client_options import PREFIX, SECRET_SETTINGS
from kafkapy.pipeline.segments.segment_data_source import SegmentDataSource
from kafkapy.pipeline.spark.kafka_data_source import HAS_LIMITS, KafkaDataSource

# Which options Spark hides where it shows those of a source: in the plans of streams, and in
# messages that have one. By itself it goes by words like password, and would show a private key.
REDACTION = "spark.sql.redaction.options.regex"
_SECRETS = "|".join(re.escape(f"{PREFIX}{name}") for name in sorted(SECRET_SETTINGS))
_HIDES_SECRETS = f"(?i:{_SECRETS})"
# What Trigger.AvailableNow is for streams that do not know it, as ours with Spark 4.1: all there is
# at its start, or else the older Trigger.Once, which does one batch, and after a crash an old one.
_AVAILABLE_NOW = "spark.sql.streaming.triggerAvailableNowWrapper.enabled"
# What Spark adds to the environment of a source when it starts a stream of it. That is a HashMap,
# one for all streams of the session, and no lock is held: two streams that start at once can both
# add the same name, the map then counts one entry too many, and no task with it can be read back
# (OptionalDataException). A name that is there already is given its value, and nothing is added.
SET_BY_STREAMS = (
    "SPARK_AUTH_SOCKET_TIMEOUT",
    "SPARK_BUFFER_SIZE",
    "SPARK_LOCAL_DIRS",
    "SPARK_PYTHON_RUNTIME",  # Spark 4.1 neither sets nor reads it
)


def register_data_sources(spark: SparkSession) -> None:
    """Makes format("kafkapy") and format("kafkapy-segments") known. Idempotent.

    What Kafka calls a secret is then one for the session, too, and Trigger.AvailableNow takes all
    there is with any Spark.
    """
    with _environment_of_streams(spark):
        for source in (KafkaDataSource, SegmentDataSource):
            spark.dataSource.register(source)
    hidden = spark.conf.get(REDACTION) or ""
    if _HIDES_SECRETS not in hidden:
        spark.conf.set(REDACTION, "|".join(filter(None, (hidden, _HIDES_SECRETS))))
    if not HAS_LIMITS:
        # What the user has set stays.
        spark.conf.set(_AVAILABLE_NOW, spark.conf.get(_AVAILABLE_NOW, "true") or "true")


@contextmanager
def _environment_of_streams(spark: SparkSession) -> Iterator[None]:
    """Functions made meanwhile have what streams set in their environment, empty."""
    if is_remote():
        # The functions are made by the server of Spark Connect, out of reach.
        yield
        return
    environment = spark.sparkContext.environment
    added = [name for name in SET_BY_STREAMS if name not in environment]
    environment.update(dict.fromkeys(added, ""))
    try:
        yield
    finally:
        for name in added:
            del environment[name]
