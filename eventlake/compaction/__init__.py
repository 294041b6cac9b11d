"""Compaction: the small files of a partition become few, with the same rows."""
