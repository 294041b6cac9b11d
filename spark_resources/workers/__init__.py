"""Code that runs on the nodes of a cluster: worker start, the EMR driver, job events. No Dagster."""
