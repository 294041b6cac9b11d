"""The calls of EMR that runs need; refusals become errors of the lake."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import aws_call
from spark_resources.engines.emr.cluster import Cluster, Json

ENDED_CLUSTER = frozenset({"TERMINATING", "TERMINATED", "TERMINATED_WITH_ERRORS"})
_ENDED_STEP = frozenset({"COMPLETED", "CANCELLED", "FAILED", "INTERRUPTED"})


@dataclass(frozen=True, slots=True)
class StepStatus:
    """The state of a step, and why it ended, if EMR knows."""

    state: str
    reason: str = ""

    @property
    def ended(self) -> bool:
        return self.state in _ENDED_STEP

    @property
    def completed(self) -> bool:
        return self.state == "COMPLETED"


@dataclass(frozen=True)
class EmrClient:
    """EMR with the permissions of one source; boto3 repeats throttled and failed calls."""

    access: AwsAccess

    @cached_property
    def _emr(self) -> Any:
        return self.access.client("emr")

    def describe(self, cluster_id: str) -> Cluster:
        """A cluster's state and software, without its nodes."""
        with aws_call(cluster_id):
            return Cluster(self._emr.describe_cluster(ClusterId=cluster_id)["Cluster"])

    def describe_nodes(self, cluster_id: str) -> Cluster:
        """The same with its nodes."""
        cluster = self.describe(cluster_id)
        fleets = cluster.described.get("InstanceCollectionType") == "INSTANCE_FLEET"
        with aws_call(cluster_id):
            if fleets:
                return replace(cluster, fleets=self._listed("list_instance_fleets", cluster_id))
            return replace(cluster, groups=self._listed("list_instance_groups", cluster_id))

    def describe_whole(self, cluster_id: str) -> Cluster:
        """The same with all that a cluster like it needs."""
        cluster = self.describe_nodes(cluster_id)
        with aws_call(cluster_id):
            return replace(
                cluster,
                bootstrap_actions=self._listed("list_bootstrap_actions", cluster_id),
                managed_scaling=self._emr.get_managed_scaling_policy(ClusterId=cluster_id).get(
                    "ManagedScalingPolicy"
                ),
            )

    def _listed(self, operation: str, cluster_id: str) -> tuple[Json, ...]:
        key = "".join(word.title() for word in operation.split("_")[1:])
        pages = self._emr.get_paginator(operation).paginate(ClusterId=cluster_id)
        return tuple(one for page in pages for one in page[key])

    def add_step(self, cluster_id: str, step: Json) -> str:
        """Add a step to the cluster; its id."""
        with aws_call(cluster_id):
            added = self._emr.add_job_flow_steps(JobFlowId=cluster_id, Steps=[step])
        step_id: str = added["StepIds"][0]
        return step_id

    def step(self, cluster_id: str, step_id: str) -> StepStatus:
        with aws_call(cluster_id):
            step = self._emr.describe_step(ClusterId=cluster_id, StepId=step_id)["Step"]
        return StepStatus(step["Status"]["State"], _reason(step["Status"]))

    def cancel(self, cluster_id: str, step_id: str, *, kill: bool = False) -> None:
        """Interrupt the process of a step, or kill it."""
        how = "TERMINATE_PROCESS" if kill else "SEND_INTERRUPT"
        with aws_call(cluster_id):
            self._emr.cancel_steps(
                ClusterId=cluster_id, StepIds=[step_id], StepCancellationOption=how
            )

    def start_cluster(self, request: Json) -> str:
        with aws_call(request["Name"]):
            started: str = self._emr.run_job_flow(**request)["JobFlowId"]
        return started

    def only_step(self, cluster_id: str) -> str:
        """The id of the step that a cluster was started with."""
        with aws_call(cluster_id):
            steps = self._emr.list_steps(ClusterId=cluster_id)["Steps"]
        step_id: str = steps[0]["Id"]
        return step_id

    def end_cluster(self, cluster_id: str) -> None:
        """Terminate a cluster. Idempotent."""
        with aws_call(cluster_id):
            self._emr.terminate_job_flows(JobFlowIds=[cluster_id])


def cluster_reason(cluster: Cluster) -> str:
    """Why a cluster ended, according to EMR."""
    return _reason(cluster.described["Status"])


def _reason(status: Json) -> str:
    """Why a state changed, according to EMR; for steps also the error, if EMR knows it."""
    details = status.get("FailureDetails") or {}
    change = status.get("StateChangeReason") or {}
    reasons = [details.get("Reason"), details.get("Message"), change.get("Message")]
    for error in status.get("ErrorDetails") or ():
        reasons.append(error.get("ErrorMessage"))
    return " ".join(dict.fromkeys(" ".join(str(text).split()) for text in reasons if text))
