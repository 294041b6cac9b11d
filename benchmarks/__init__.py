"""Ours and what a user could pick instead, on the same archive, held to the same result."""
