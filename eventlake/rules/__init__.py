"""The rules of the lake: pure functions and values, without files or network."""
