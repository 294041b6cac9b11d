"""Jobs: sync, upkeep, check."""
