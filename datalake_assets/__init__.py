"""The code location: assets, checks, schedules and the `datalake` command."""
