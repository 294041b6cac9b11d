"""Compares our engine with alternatives on the same archive and verifies every result."""
