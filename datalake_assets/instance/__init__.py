"""The Dagster instance: its home, its storage, the snapshot of known tables."""
