"""The lake itself, as a contestant."""
