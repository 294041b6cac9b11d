"""Checks of clusters. EMR: the cluster runs, may be used, and is in the right region.

The permission to submit is tested with an empty list of steps: with the permission, EMR reports
that mistake. Permissions to start and to terminate clusters, for replays, cannot be tested.

A standalone cluster is tested by an application of its own, as runs use it; it takes seconds.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from datalake_assets.preflight.finding import Finding, Remark, finding_of
from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import aws_call
from eventlake.lake import Lake
from eventlake.rules.errors import InvalidSetting
from eventlake.runs.context import Silent
from eventlake.settings.models import Source
from spark_resources.engines.cluster.engine import ClusterSession
from spark_resources.engines.cluster.executors import NoExecutors
from spark_resources.engines.emr.client import EmrClient
from spark_resources.engines.emr.cluster import VENDOR_TAG, Cluster
from spark_resources.engines.emr.step import properties_of, refuse_unusable

_READY = ("RUNNING", "WAITING")
_AT_WORK = ("PENDING", "RUNNING")


def cluster_findings(lake: Lake, sources: Sequence[Source]) -> Iterator[Finding]:
    """Check each cluster once, with the access of the first of its sources."""
    clusters: dict[str, Source] = {}
    for source in sources:
        clusters.setdefault(source.emr_cluster_id or "", source)  # the settings require one
    conf = lake.settings.spark.conf
    for cluster_id, source in clusters.items():
        access = AwsAccess.of(source)
        found = finding_of(f"cluster {cluster_id}", partial(_cluster, access, cluster_id, conf))
        yield found
        if found.error is None:
            yield finding_of(f"steps of {cluster_id}", partial(_steps, access, cluster_id))


def _cluster(access: AwsAccess, cluster_id: str, conf: Mapping[str, str]) -> str:
    cluster = EmrClient(access).describe_nodes(cluster_id)
    refuse_unusable(cluster)
    properties_of(cluster, "", conf)  # refuses nodes that are too small
    _refuse_untagged(cluster)
    _refuse_other_region(cluster, access.region_name())
    if cluster.state not in _READY:
        raise Remark(f"is {cluster.state}; syncs wait until it is ready")
    if cluster.log_uri is None:
        raise Remark(
            f"{cluster.state}, {cluster.release}, but without a LogUri: what a step says when it "
            "fails is lost. Create it with logs to the lake's bucket, below logs/"
        )
    return f"{cluster.state}, {cluster.release}, tagged vendor=segment"


def _refuse_untagged(cluster: Cluster) -> None:
    if VENDOR_TAG not in cluster.described.get("Tags", ()):
        raise InvalidSetting(
            f"Eventlake has invalid configuration for `emr_cluster_id`: EMR cluster {cluster.id} "
            "lacks the tag vendor=segment, without which the role of docs/aws.md may not use it. "
            f"Run `aws emr add-tags --resource-id {cluster.id} --tags vendor=segment`."
        )


def _refuse_other_region(cluster: Cluster, region: str | None) -> None:
    """Raise if the zone of the cluster, a region and a suffix, is in another region."""
    zone = str(cluster.described.get("Ec2InstanceAttributes", {}).get("Ec2AvailabilityZone") or "")
    if zone and region and not zone.startswith(region):
        raise InvalidSetting(
            f"Eventlake has invalid configuration for `region`: EMR cluster {cluster.id} is in "
            f"{zone}, the settings (or the environment) say {region}. Bucket, cluster and catalog "
            "must be in one region."
        )


def _steps(access: AwsAccess, cluster_id: str) -> str:
    emr = access.client("emr")
    with aws_call(cluster_id):
        steps = emr.list_steps(ClusterId=cluster_id)["Steps"]
        for step in steps[:1]:
            emr.describe_step(ClusterId=cluster_id, StepId=step["Id"])
    _try_to_submit_nothing(emr, cluster_id)
    at_work = sum(step["Status"]["State"] in _AT_WORK for step in steps)
    return f"may be submitted and read; {at_work} pending or running"


def _try_to_submit_nothing(emr: Any, cluster_id: str) -> None:
    """Any error but a denied permission shows that steps may be submitted."""
    from botocore.exceptions import ClientError

    try:
        with aws_call(cluster_id):
            emr.add_job_flow_steps(JobFlowId=cluster_id, Steps=[])
    except (ClientError, InvalidSetting):
        return


_WAIT_SECONDS = 30.0  # shorter than for runs: a person waits


def spark_cluster_findings(lake: Lake) -> Iterator[Finding]:
    """The findings in order; each needs the one before it."""
    with ClusterSession(lake.settings, lake.storage, Silent(), _WAIT_SECONDS) as session:
        checks = {
            "Spark master": _master,
            "Spark executors": _executors,
            "Python of the workers": _python,
            "storage, from there": _storage,
        }
        for what, check in checks.items():
            found = finding_of(what, partial(check, session))
            yield found
            if found.level != "ok":
                return


def _master(session: ClusterSession) -> str:
    return f"{session.engine} answers; this machine is {session.own_address} for it"


def _executors(session: ClusterSession) -> str:
    try:
        return str(session.executors)
    except NoExecutors as none:
        raise Remark(
            f"none within {_WAIT_SECONDS:g} s: other applications have all cores, or no worker is "
            "running or has enough free memory; runs wait longer (`wait_minutes` under `spark`)"
        ) from none


def _python(session: ClusterSession) -> str:
    _ = session.prepared
    if session.shipped is None:
        return f"{session.python}, with the packages that are installed here"
    return f"{session.python}; each run ships the packages, since workers have other versions"


def _storage(session: ClusterSession) -> str:
    return session.try_storage("segment-stage")
