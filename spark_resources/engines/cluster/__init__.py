"""A standalone Spark cluster: `engine: spark://host:port`, with the driver in this process."""
