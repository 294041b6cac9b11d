"""The code that runs on the cluster; it knows Spark and the lake, never Dagster."""
