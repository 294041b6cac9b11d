"""Another type for a column: what it would do to the data, and the wish for it."""
