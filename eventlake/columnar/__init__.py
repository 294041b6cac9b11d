"""Compiled kernels and file formats: raw bytes to columns, columns to Parquet bytes.

Nothing here knows tables, sources or runs, or imports from another room. See README.md.
"""
