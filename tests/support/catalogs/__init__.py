"""Catalog entries for tests, and changes made by hand."""
