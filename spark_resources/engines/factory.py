"""From the settings to the engine they ask for."""

from eventlake.settings.models import Settings
from spark_resources.engines.base import SparkEngine


def engine_of(settings: Settings) -> SparkEngine:
    """Only what is asked for is imported: PySpark is slow to load, and AWS not always wanted."""
    if settings.engine == "emr":
        from spark_resources.engines.emr.engine import EmrEngine

        return EmrEngine()
    if settings.engine.startswith("spark://"):
        from spark_resources.engines.cluster.engine import ClusterEngine

        return ClusterEngine()
    from spark_resources.engines.local import local_engine

    return local_engine()
