"""What readers see: databases, tables, and the location of each partition."""
