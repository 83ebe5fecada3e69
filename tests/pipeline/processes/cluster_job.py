"""What test_standalone_cluster submits: a topic to parquet files, and those to another topic.

Nothing in here registers our source: Spark finds it on the Python path, as users will have it.
"""

import sys
import time
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

TASKS = 12
_ROW_S = 0.001


def main(bootstrap: str, source: str, destination: str, directory: str) -> None:
    spark = SparkSession.builder.appName("cluster job").getOrCreate()

    @udf("int")
    def taking_its_time(offset: int) -> int:
        context = TaskContext.get()
        assert context is not None
        (Path(directory) / f"task-{context.taskAttemptId()}").touch()
        time.sleep(_ROW_S)
        return context.partitionId()

    topic = spark.read.format("kafkapy").option("kafka.bootstrap.servers", bootstrap)
    rows = topic.option("subscribe", source).option("minPartitions", TASKS).load()
    parquet = f"{directory}/parquet"
    rows.withColumn("task", taking_its_time("offset")).write.parquet(parquet)

    archived = spark.read.parquet(parquet).select("key", "value")
    out = archived.write.format("kafkapy").option("kafka.bootstrap.servers", bootstrap)
    out.option("topic", destination).mode("append").save()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
