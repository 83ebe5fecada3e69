"""Records of Kafka's batches as Arrow columns, without a Python object per record."""
