"""Checks of published tables, files and catalog entries."""
