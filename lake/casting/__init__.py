"""Casts of whole columns: fast where Arrow is exact, value by value (`lake.casts`) where not."""
