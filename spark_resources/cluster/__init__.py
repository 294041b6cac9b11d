"""A standalone cluster of Spark: `engine: spark://host:port`, with the driver in this process."""
