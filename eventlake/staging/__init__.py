"""From raw lines to Arrow batches: what a task makes of its files, before anything is resolved."""
