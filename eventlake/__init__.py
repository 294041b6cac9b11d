"""The domain: what an event, a table, a type and a report are, without Dagster or Spark."""
