"""From staged batches to Parquet: duplicates dropped, values cast, what does not fit rescued."""
