"""Upkeep: compaction, retention, removal of unreferenced files after a grace period, recovery."""
