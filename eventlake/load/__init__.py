"""What a Spark task does: stage raw files, deduplicate ids, write Parquet files, log records."""
