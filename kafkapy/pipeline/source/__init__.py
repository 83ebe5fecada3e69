"""format("kafkapy"), reading: topics in batches and in streams."""
