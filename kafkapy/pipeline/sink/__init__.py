"""format("kafkapy"), writing: rows become records of topics, exactly once if asked for."""
