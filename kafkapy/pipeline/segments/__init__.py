"""format("kafkapy-segments"): a broker's log files read from disk, without the broker.

Nothing here writes, creates or locks a file, so that a live broker's directory can be read as well
as a copy, whether kafkapy or Apache Kafka wrote it.
"""
