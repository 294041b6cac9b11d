"""Which releases of EMR can run our jobs."""

import re

SUPPORTED = "emr-spark-8.0.0"
_SPARK_RELEASE = re.compile(r"emr-spark-(\d+)\.\d+\.\d+(?:[.-].*)?")


def is_supported(release: str) -> bool:
    """Spark 4 comes with the releases that are called after Spark, from 8 on."""
    found = _SPARK_RELEASE.fullmatch(release)
    return found is not None and int(found[1]) >= 8


def why_not(release: str) -> str:
    return (
        f"it runs release {release or 'unknown'}, whose Spark is older than 4.0. Our jobs need "
        f"Spark 4: create the cluster with release {SUPPORTED} or newer, and set `emr_cluster_id`"
    )
