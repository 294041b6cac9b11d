"""Compiled kernels and file formats: raw bytes to columns, columns to Parquet bytes.

It has no notion of tables, sources or runs, and imports no other room. See README.md.
"""
