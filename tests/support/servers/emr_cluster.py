"""EMR of our own for tests: moto keeps clusters and steps, and this carries the steps out.

moto runs no step, so a thread takes the steps it was given and starts their commands as processes,
keeps their states, brings their logs to the `LogUri` and ends clusters that have no more steps.
What an EMR node has, the processes have, too: `aws`, `spark-submit` with S3 as a file system, and
a Python without packages.
"""

import gzip
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moto.core.responses import ActionResult
from moto.emr.models import Cluster, ElasticMapReduceBackend, Step, emr_backends
from moto.emr.responses import ElasticMapReduceResponse

from tests.support.repo import heed_signals
from tests.support.servers.aws import ACCOUNT, REGION, AwsServer
from tests.support.servers.emr_node import Command, Node

RELEASE = "emr-spark-8.0.0"


def start_cluster(server: AwsServer, bucket: str, **other: Any) -> str:
    """A standing cluster as the infrastructure code creates it; its id."""
    kind = {"InstanceType": "m5.xlarge", "Market": "ON_DEMAND"}
    nodes = (("MASTER", 1), ("CORE", 2), ("TASK", 2))
    instances = {
        "KeepJobFlowAliveWhenNoSteps": True,
        "Ec2KeyName": "key",
        "Placement": {"AvailabilityZone": f"{REGION}a"},
        "InstanceGroups": [{"InstanceRole": r, "InstanceCount": n, **kind} for r, n in nodes],
    }
    request: dict[str, Any] = {
        "Name": "datalake",
        "ReleaseLabel": RELEASE,
        "LogUri": f"s3://{bucket}/logs/",
        "Applications": [{"Name": "Spark"}],
        "JobFlowRole": "datalake-emr-instance",
        "ServiceRole": "datalake-emr-service",
        "Tags": [{"Key": "vendor", "Value": "segment"}, {"Key": "team", "Value": "data"}],
        "Instances": instances,
    }
    return str(server.client("emr").run_job_flow(**request | other)["JobFlowId"])


@dataclass
class LocalEmr:
    """The clusters of moto, and a thread that works for them."""

    server: AwsServer
    node: Node
    command: Command
    logs_arrive: bool = True
    asked: list[Mapping[str, Any]] = field(default_factory=list)  # clusters, as they were asked for
    cancelled: list[tuple[str, str]] = field(default_factory=list)  # steps, and how
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    _folders: dict[str, Path] = field(default_factory=dict)

    @property
    def backend(self) -> ElasticMapReduceBackend:
        # moto looks for EMR's region in the name of the host, and finds none in ours.
        return emr_backends[ACCOUNT]["us-east-1"]

    def start_cluster(self, bucket: str, **other: Any) -> str:
        return start_cluster(self.server, bucket, **other)

    def state(self, cluster_id: str) -> str | None:
        return self.backend.clusters[cluster_id].state

    def steps(self, cluster_id: str) -> list[Step]:
        return self.backend.clusters[cluster_id].steps

    def cancel(self, step_id: str, how: str) -> None:
        self.cancelled.append((step_id, how))
        process = self._running.get(step_id)
        number = signal.SIGTERM if how == "SEND_INTERRUPT" else signal.SIGKILL
        if process is not None:
            os.killpg(process.pid, number)

    @property
    def at_work(self) -> bool:
        return any(process.poll() is None for process in list(self._running.values()))

    def kill_all(self) -> None:
        """As if the machines had failed."""
        for process in list(self._running.values()):
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)

    def work(self, done: threading.Event) -> None:
        while not done.wait(0.2):
            for cluster in list(self.backend.clusters.values()):
                if cluster.state == "TERMINATED":
                    self._kill(cluster)
                    continue
                try:
                    self._work_on(cluster)
                except Exception:  # a test that waits for steps must not do so for ever
                    cluster.terminate()
                    raise
        for process in self._running.values():
            process.kill()
            process.wait()

    def _work_on(self, cluster: Cluster) -> None:
        for step in cluster.steps:
            if step.state in ("PENDING", "RUNNING"):
                process = self._running.get(step.id) or self._begin(step)
                if process.poll() is not None:
                    self._end(cluster, step, process.returncode)
                return  # one after the other
        if cluster.steps and not cluster.keep_job_flow_alive_when_no_steps:
            cluster.terminate()

    def _kill(self, cluster: Cluster) -> None:
        for step in cluster.steps:
            process = self._running.get(step.id)
            if process is not None and process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)

    def _begin(self, step: Step) -> "subprocess.Popen[bytes]":
        folder = self._folders[step.id] = self.node.folder / "steps" / step.id
        folder.mkdir(parents=True)
        with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
            self._running[step.id] = subprocess.Popen(
                self.command(self.node, folder, list(step.args)),
                stdout=out,
                stderr=err,
                cwd=folder,
                env=self.node.environment(),
                start_new_session=True,
                preexec_fn=heed_signals,
            )
        step.state = "RUNNING"
        return self._running[step.id]

    def _end(self, cluster: Cluster, step: Step, code: int) -> None:
        bucket, _, folder = cluster.log_uri.removeprefix("s3://").partition("/")
        for name in ("stdout", "stderr") if self.logs_arrive else ():
            self.server.client("s3").put_object(
                Bucket=bucket,
                Key=f"{folder.strip('/')}/{cluster.id}/steps/{step.id}/{name}.gz",
                Body=gzip.compress((self._folders[step.id] / name).read_bytes()),
            )
        was_cancelled = step.id in dict(self.cancelled)
        step.state = "CANCELLED" if was_cancelled else "FAILED" if code else "COMPLETED"
        if step.state == "FAILED" and step.action_on_failure == "TERMINATE_CLUSTER":
            cluster.terminate()

    def logs(self, step_id: str) -> str:
        return (self._folders[step_id] / "stderr").read_text()


@contextmanager
def local_emr(server: AwsServer, folder: Path, command: Command) -> Iterator[LocalEmr]:
    """Steps are worked on while the block runs; moto learns the calls it does not know."""
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir()
    emr = LocalEmr(server, Node(folder, server), command)
    done = threading.Event()
    thread = threading.Thread(target=emr.work, args=(done,), name="local EMR", daemon=True)
    with _taught(emr):
        thread.start()
        try:
            yield emr
        finally:
            done.set()
            thread.join()


@contextmanager
def _taught(emr: LocalEmr) -> Iterator[None]:
    known = ElasticMapReduceResponse.run_job_flow

    def run_job_flow(self: ElasticMapReduceResponse) -> ActionResult:
        emr.asked.append(self._get_params())
        return known(self)

    def cancel_steps(self: ElasticMapReduceResponse) -> ActionResult:
        for step_id in self._get_param("StepIds"):
            emr.cancel(step_id, self._get_param("StepCancellationOption"))
        return ActionResult({"CancelStepsInfoList": []})

    def get_managed_scaling_policy(self: ElasticMapReduceResponse) -> ActionResult:
        limits = {"UnitType": "Instances", "MinimumCapacityUnits": 2, "MaximumCapacityUnits": 8}
        return ActionResult({"ManagedScalingPolicy": {"ComputeLimits": limits}})

    taught = ElasticMapReduceResponse
    taught.run_job_flow = run_job_flow  # type: ignore[method-assign]
    taught.cancel_steps = cancel_steps  # type: ignore[attr-defined]
    taught.get_managed_scaling_policy = get_managed_scaling_policy  # type: ignore[attr-defined]
    try:
        yield
    finally:
        taught.run_job_flow = known  # type: ignore[method-assign]
        del taught.cancel_steps, taught.get_managed_scaling_policy  # type: ignore[attr-defined]
