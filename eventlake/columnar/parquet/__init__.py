"""Parquet files written by compiled code."""
