"""Parquet files written by compiled code; `writer.py` is the entry point."""
