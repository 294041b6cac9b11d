"""The catalog in AWS Glue, which Athena, Redshift Spectrum, EMR and Spark read."""

from eventlake.catalog.glue.catalog import GlueCatalog

__all__ = ["GlueCatalog"]
