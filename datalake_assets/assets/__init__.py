"""The assets: raw archives, event tables, schemas, sync reports."""
