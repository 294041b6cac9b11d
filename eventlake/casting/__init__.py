"""Casts of whole columns: fast where Arrow is exact, value by value (`eventlake.rules.casts`) where not."""
