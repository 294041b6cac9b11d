"""Code that runs on the nodes of a cluster: worker start, EMR driver, job events. No Dagster."""
