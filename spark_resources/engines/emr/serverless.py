"""The engine for EMR Serverless: each sync and each replay is a job run of its own."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from uuid import uuid4

from pydantic import Field

from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import aws_call
from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.errors import InvalidSetting
from eventlake.runs.context import Listener
from spark_resources.dataflow.job import LakeJob
from spark_resources.engines.base import SparkEngine
from spark_resources.engines.emr.cluster import SUPPORTED, VENDOR_TAG, Json, is_supported
from spark_resources.engines.emr.engine import without_our_role
from spark_resources.engines.emr.logs import LogFolder
from spark_resources.engines.emr.step import archives, our_properties
from spark_resources.engines.remote.run import RemoteRun
from spark_resources.engines.remote.service import JobStatus, Pace, RemoteJob, RemoteService
from spark_resources.shipping import Shipped, Target, ship

_ENDED = frozenset({"SUCCESS", "FAILED", "CANCELLED"})
_GONE = "TERMINATED"
# Without it, EMR Serverless cancels a job after 12 hours.
_TIMEOUT_MINUTES = 30 * 24 * 60
_NAME_LENGTH = 256
_EXECUTOR_CORES, _EXECUTORS = 4, 8
# Rows are in the memory of Python, not of the JVM. Memory and cores must be a size that EMR
# Serverless has: 8 GB for two, and 12 GB for four cores.
SIZES = {
    "spark.driver.cores": "2",
    "spark.driver.memory": "2g",
    "spark.driver.memoryOverhead": "6g",
    "spark.executor.cores": str(_EXECUTOR_CORES),
    "spark.executor.memory": "4g",
    "spark.executor.memoryOverhead": "8g",
    "spark.executor.instances": "2",  # at first
    "spark.dynamicAllocation.maxExecutors": str(_EXECUTORS),
}


@dataclass(frozen=True, slots=True)
class Application:
    """An application as EMR Serverless describes it."""

    described: Json

    @property
    def id(self) -> str:
        return str(self.described["applicationId"])

    @property
    def state(self) -> str:
        return str(self.described["state"])

    @property
    def release(self) -> str:
        return str(self.described["releaseLabel"])

    @property
    def machine(self) -> str:
        return "aarch64" if self.described.get("architecture") == "ARM64" else "x86_64"

    def refuse_unusable(self) -> None:
        """Raise if our jobs cannot run on it."""
        if self.state == _GONE:
            raise unusable(f"EMR Serverless application {self.id} has been deleted. Create another")
        if str(self.described["type"]).upper() != "SPARK":
            raise unusable(
                f"EMR Serverless application {self.id} is of type {self.described['type']}. "
                "Create one of type SPARK"
            )
        if not is_supported(self.release):
            raise unusable(
                f"EMR Serverless application {self.id} has release {self.release}, whose Spark is "
                f"older than 4.0. Create one with release {SUPPORTED} or newer"
            )


def unusable(problem: str) -> InvalidSetting:
    return InvalidSetting(
        "Eventlake has invalid configuration for `emr_serverless_application_id`: "
        f"{problem}, and set its id."
    )


@dataclass(frozen=True)
class ServerlessClient:
    """The calls of EMR Serverless that runs need; refusals become errors of the lake."""

    access: AwsAccess

    @cached_property
    def _client(self) -> Any:
        return self.access.client("emr-serverless")

    def application(self, application_id: str) -> Application:
        with aws_call(application_id):
            found = self._client.get_application(applicationId=application_id)
        return Application(found["application"])

    def start(self, application_id: str, request: Json) -> str:
        with aws_call(application_id):
            started: str = self._client.start_job_run(applicationId=application_id, **request)[
                "jobRunId"
            ]
        return started

    def state(self, application_id: str, run_id: str) -> JobStatus:
        with aws_call(application_id):
            found = self._client.get_job_run(applicationId=application_id, jobRunId=run_id)
        run = found["jobRun"]
        reason = " ".join(str(run.get("stateDetails") or "").split())
        return JobStatus(run["state"], run["state"] in _ENDED, reason)

    def cancel(self, application_id: str, run_id: str) -> None:
        with aws_call(application_id):
            self._client.cancel_job_run(applicationId=application_id, jobRunId=run_id)


@dataclass
class EmrServerless(RemoteService):
    """Job runs on EMR Serverless, for one run."""

    access: AwsAccess
    python: str
    conf: Mapping[str, str]
    listener: Listener
    pace: Pace
    name = "EMR Serverless"
    _application_id: str = field(default="", init=False)
    _logs: str = field(default="", init=False)  # the folder of this job, as a URI

    @cached_property
    def client(self) -> ServerlessClient:
        return ServerlessClient(self.access)

    def handed_over(self, job: LakeJob) -> LakeJob:
        return without_our_role(job, self.access)

    def submit(self, job: LakeJob, arguments: Sequence[str]) -> RemoteJob:
        source = job.source
        if source.emr_serverless_application_id is None:
            raise unusable(f"it is missing for source {source.slug}. Create an application")
        if source.execution_role_arn is None:
            raise InvalidSetting(
                "Eventlake has invalid configuration for `execution_role_arn`: it is missing for "
                f"source {source.slug}. Set it to the role that jobs on EMR Serverless have."
            )
        application = self.client.application(source.emr_serverless_application_id)
        application.refuse_unusable()
        storage = Lake.open(job.settings).for_source(source).storage
        shipped = ship(storage, Target(application.machine, self.python), self.listener)
        logs = storage.full(paths.LOGS)
        request = self._request(job, shipped, arguments, logs)
        self._application_id = application.id
        run_id = self.client.start(application.id, request)
        self._logs = f"{logs}/applications/{application.id}/jobs/{run_id}/SPARK_DRIVER"
        return RemoteJob(
            run_id,
            f"{application.id}/{run_id}",
            f"EMR Serverless application {application.id} (job run {run_id})",
            f"Its logs are in {self._logs}",
        )

    def _request(self, job: LakeJob, shipped: Shipped, arguments: Sequence[str], logs: str) -> Json:
        region = self.access.region_name()
        options = [*(("--region", region) if region else ()), *arguments]
        properties = {
            "spark.archives": archives(shipped),
            **our_properties(self.python),
        }
        name = f"datalake {job.kind} {job.source.slug} {job.run_id}"
        own = {"datalake-source": job.source.id, "datalake-run": job.run_id}
        return {
            "name": name[:_NAME_LENGTH],
            "clientToken": uuid4().hex,  # boto3 may repeat the call
            "executionRoleArn": job.source.execution_role_arn,
            "executionTimeoutMinutes": _TIMEOUT_MINUTES,
            "tags": {**own, VENDOR_TAG["Key"]: VENDOR_TAG["Value"]},
            "jobDriver": {
                "sparkSubmit": {
                    "entryPoint": shipped.start,
                    "entryPointArguments": [shipped.code, shipped.environment, *options],
                    "sparkSubmitParameters": " ".join(
                        f"--conf {key}={value}" for key, value in properties.items()
                    ),
                }
            },
            "configurationOverrides": {
                # In a mapping, values may have spaces.
                "applicationConfiguration": [
                    {"classification": "spark-defaults", "properties": sizes(self.conf)}
                ],
                "monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": f"{logs}/"}},
            },
        }

    def status(self, remote: RemoteJob) -> JobStatus:
        return self.client.state(self._application_id, remote.id)

    def cancel(self, remote: RemoteJob, *, kill: bool) -> None:
        """EMR Serverless interrupts the job and kills it by itself soon after."""
        if not kill:
            self.client.cancel(self._application_id, remote.id)

    def log_tail(self, remote: RemoteJob) -> list[str]:
        return LogFolder(self.access, self._logs).tail(self.pace.sleep)


def sizes(conf: Mapping[str, str]) -> dict[str, str]:
    """Sizes and limits, unless `conf` says otherwise; tasks for all executors that may start."""
    found = {**SIZES, **conf}
    cores = int(found["spark.executor.cores"])
    slots = cores * int(found["spark.dynamicAllocation.maxExecutors"])
    return {"spark.default.parallelism": str(slots), **found}


class EmrServerlessEngine(SparkEngine):
    """Syncs and replays are job runs of a Spark application on EMR Serverless."""

    application_id: str | None = Field(default=None, description="The Spark application.")
    execution_role_arn: str | None = Field(default=None, description="The role of its jobs.")
    region: str | None = Field(default=None, description="AWS region of the application.")
    role_arn: str | None = Field(default=None, description="The role that starts job runs.")
    python: str = Field(default="3.11", description="Version of Python in the application.")
    conf: dict[str, str] = Field(default={}, description="Sizes, and more settings of Spark.")

    def settings(self) -> dict[str, Any]:
        return {
            "emr_serverless_application_id": self.application_id,
            "execution_role_arn": self.execution_role_arn,
            "region": self.region,
            "iam_role_arn": self.role_arn,
        }

    def run(self, job: LakeJob, listener: Listener) -> Iterator[Any]:
        job, pace = self.configured(job), self.pace()
        service = EmrServerless(AwsAccess.of(job.source), self.python, self.conf, listener, pace)
        return RemoteRun(job, listener, service, pace).run()

    def pace(self) -> Pace:
        return Pace()
