"""Casts of whole columns: fast where Arrow is exact, value by value (`eventlake.casts`) where not."""
