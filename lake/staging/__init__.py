"""From raw lines to Arrow batches: what one task makes of its files, before anything is resolved."""
