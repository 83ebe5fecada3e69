"""Topics in Spark and back: data sources for PySpark, and pipelines declared in one file.

columnar    records of Kafka's batches as Arrow columns
source      format("kafkapy"): topics read in batches and in streams
sink        format("kafkapy"): rows written to topics, exactly once if asked for
segments    format("kafkapy-segments"): a broker's log files read from disk
spark       Java, sessions, registration
jobs        kafka-pipeline: pipelines declared in a file, and what one sees of them
"""
