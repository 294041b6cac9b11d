"""The console: web pages over the lake alone, beside Dagster's UI."""
