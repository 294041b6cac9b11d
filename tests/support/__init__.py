"""Helpers for tests, sorted by what they stand for."""
