"""Spark on Amazon EMR: steps on a standing cluster, and a cluster of its own for each replay."""
