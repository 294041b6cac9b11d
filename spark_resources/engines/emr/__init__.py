"""Spark on Amazon EMR: steps on a standing cluster, one cluster of its own per replay."""
