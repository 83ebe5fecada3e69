"""What worker_kills submits: a topic to parquet files, and to another topic.

Nothing in here registers our source: Spark finds it on the Python path, as users will have it.
"""

import sys
import time
from pathlib import Path

from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

_ROW_S = 0.001


def main(bootstrap: str, source: str, destination: str, tasks: str, directory: str) -> None:
    spark = SparkSession.builder.appName("cluster job").getOrCreate()

    @udf("int")
    def taking_its_time(offset: int) -> int:
        context = TaskContext.get()
        assert context is not None
        (Path(directory) / f"task-{context.taskAttemptId()}").touch()
        time.sleep(_ROW_S)
        return context.partitionId()

    topic = spark.read.format("kafkapy").option("kafka.bootstrap.servers", bootstrap)
    rows = topic.option("subscribe", source).option("minPartitions", tasks).load()
    slow = rows.withColumn("task", taking_its_time("offset"))
    slow.write.parquet(f"{directory}/parquet")

    out = slow.select("key", "value", "task").write
    out = out.format("kafkapy").option("kafka.bootstrap.servers", bootstrap)
    out.option("topic", destination).option("exactlyOnce", "true").mode("append").save()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
