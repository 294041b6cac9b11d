"""Suppressed users and the rows they still have in the lake."""
