"""What readers are told: databases, tables, and where each partition lies now."""
