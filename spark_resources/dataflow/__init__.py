"""The passes over the data on Spark: stage, deduplicate, load, log."""
