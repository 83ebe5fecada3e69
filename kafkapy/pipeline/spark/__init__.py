"""Where Spark and kafkapy meet: Java, sessions, and the data sources' names."""
