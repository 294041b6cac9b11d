"""Another type for a column: what it would do to the data, and the request for it."""
