"""Helpers that tests and benchmarks share."""
