"""EMR Serverless of our own for tests: moto keeps applications, and this runs their jobs.

A driver has a container of its own there: its working folder has the unpacked archives, and no
`aws` is on the path.
"""

import gzip
import inspect
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
from moto.core.responses import ActionResult
from moto.emrserverless.models import Application, JobRun, emrserverless_backends
from moto.emrserverless.responses import EMRServerlessResponse

from tests.support.repo import heed_signals
from tests.support.servers.aws import ACCOUNT, REGION, AwsServer
from tests.support.servers.emr_node import IN_PROCESS, PYTHON, Node, gated_flow, plain_python

ServerlessCommand = Callable[[Node, Path, JobRun], list[str]]
_SECONDS = 0.2


@dataclass
class LocalServerless:
    """The applications of moto, and a thread that runs their jobs."""

    server: AwsServer
    node: Node
    command: ServerlessCommand
    logs_arrive: bool = True
    cancelled: list[str] = field(default_factory=list)
    _running: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def create_application(self, **other: Any) -> str:
        request: dict[str, Any] = {
            "name": "datalake",
            "type": "SPARK",
            "releaseLabel": "emr-spark-8.1.0",
            "tags": {"vendor": "segment"},
        }
        made = self.server.client("emr-serverless").create_application(**request | other)
        return str(made["applicationId"])

    def runs(self, application_id: str) -> list[JobRun]:
        runs: list[JobRun] = emrserverless_backends[ACCOUNT][REGION].job_runs.get(
            application_id, []
        )
        return runs

    @property
    def at_work(self) -> bool:
        return any(process.poll() is None for process in list(self._running.values()))

    def kill_all(self) -> None:
        """As if the containers had failed."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int, *run_ids: str) -> None:
        for run_id in run_ids or list(self._running):
            process = self._running.get(run_id)
            if process is not None and process.poll() is None:
                os.killpg(process.pid, number)

    def cancel(self, run: JobRun) -> None:
        self.cancelled.append(run.id)
        run.state = "CANCELLING"
        self._signal(signal.SIGTERM, run.id)

    def work(self, done: threading.Event) -> None:
        backend = emrserverless_backends[ACCOUNT][REGION]
        while not done.wait(_SECONDS):
            for run in [run for runs in list(backend.job_runs.values()) for run in list(runs)]:
                try:
                    self._work_on(run)
                except Exception:  # a test that waits for it must not do so for ever
                    run.state = "FAILED"
                    raise
        self._signal(signal.SIGKILL)
        for process in self._running.values():
            process.wait()

    def _work_on(self, run: JobRun) -> None:
        if run.state == "SUBMITTED":
            run.state = "RUNNING"
            self._running[run.id] = self._begin(run)
        elif run.state in ("RUNNING", "CANCELLING"):
            code = self._running[run.id].poll()
            if code is not None:
                self._end(run, code)

    def _folder(self, run: JobRun) -> Path:
        return self.node.folder / "runs" / run.id

    def _begin(self, run: JobRun) -> "subprocess.Popen[bytes]":
        folder = self._folder(run)
        folder.mkdir(parents=True)
        with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
            return subprocess.Popen(
                self.command(self.node, folder, run),
                stdout=out,
                stderr=err,
                cwd=folder,
                env=self.node.environment(),
                start_new_session=True,
                preexec_fn=heed_signals,
            )

    def _end(self, run: JobRun, code: int) -> None:
        overrides: Any = run.configuration_overrides
        logs = overrides["monitoringConfiguration"]["s3MonitoringConfiguration"]["logUri"]
        bucket, _, folder = logs.removeprefix("s3://").partition("/")
        place = f"{folder.strip('/')}/applications/{run.application_id}/jobs/{run.id}/SPARK_DRIVER"
        for name in ("stdout", "stderr") if self.logs_arrive else ():
            self.server.client("s3").put_object(
                Bucket=bucket,
                Key=f"{place}/{name}.gz",
                Body=gzip.compress((self._folder(run) / name).read_bytes()),
            )
        if run.id in self.cancelled:
            run.state = "CANCELLED"
        else:
            run.state = "FAILED" if code else "SUCCESS"
            run.state_details = f"Job ended with exit code {code}" if code else ""

    def log(self, run: JobRun) -> str:
        return (self._folder(run) / "stderr").read_text()


@contextmanager
def local_serverless(
    server: AwsServer, folder: Path, command: ServerlessCommand
) -> Iterator[LocalServerless]:
    """Jobs are run while the block runs."""
    folder.mkdir()
    serverless = LocalServerless(server, Node(folder, server, has_aws=False), command)
    done = threading.Event()
    thread = threading.Thread(
        target=serverless.work, args=(done,), name="local EMR Serverless", daemon=True
    )
    with _taught(serverless):
        thread.start()
        try:
            yield serverless
        finally:
            done.set()
            thread.join()


@contextmanager
def _taught(serverless: LocalServerless) -> Iterator[None]:
    """moto takes every job for successful, and knows no release that is named after Spark."""
    backend = emrserverless_backends[ACCOUNT][REGION]
    start, create = backend.start_job_run, backend.create_application

    def start_job_run(**request: Any) -> JobRun:
        run = start(**request)
        run.state = "SUBMITTED"
        return run

    def create_application(**request: Any) -> Application:
        return new_application(create, **request)

    def cancel_job_run(self: EMRServerlessResponse) -> ActionResult:
        application_id, run_id = self._get_param("applicationId"), self._get_param("jobRunId")
        serverless.cancel(backend.get_job_run(application_id, run_id))
        return ActionResult({"applicationId": application_id, "jobRunId": run_id})

    known = EMRServerlessResponse.cancel_job_run
    EMRServerlessResponse.cancel_job_run = cancel_job_run  # type: ignore[method-assign]
    taught: Any = backend
    taught.start_job_run, taught.create_application = start_job_run, create_application
    try:
        yield
    finally:
        EMRServerlessResponse.cancel_job_run = known  # type: ignore[method-assign]
        del taught.start_job_run, taught.create_application


def new_application(create: Callable[..., Application], **request: Any) -> Application:
    """moto checks the name of the release, and knows only older ones."""
    absent = dict.fromkeys(inspect.signature(create).parameters)
    label = request.pop("release_label")
    made = create(**absent | request | {"release_label": "emr-7.0.0"})
    made.release_label = label
    return made


def submitted(run: JobRun) -> tuple[Mapping[str, str], str, list[str]]:
    """The settings of a job, its program, and the arguments of that."""
    driver: Any = run.job_driver
    spark = driver["sparkSubmit"]
    overrides: Any = run.configuration_overrides
    [defaults] = overrides["applicationConfiguration"]
    given = shlex.split(spark["sparkSubmitParameters"])
    own = dict(conf.split("=", 1) for conf in given if conf != "--conf")
    return {**defaults["properties"], **own}, spark["entryPoint"], spark["entryPointArguments"]


def spark_submit(node: Node, folder: Path, run: JobRun) -> list[str]:
    """The job as it was submitted, on this machine, in a folder with the unpacked archives."""
    settings, program, arguments = submitted(run)
    node.unpack(settings["spark.archives"], folder)
    not_here = ("spark.archives", "spark.driver.", "spark.executor.", "spark.dynamicAllocation.")
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--master", "local[2]"]
    for key, value in {**settings, "spark.default.parallelism": "2"}.items():
        if not key.startswith(not_here):
            command += ["--conf", f"{key}={value}"]
    return [*command, str(node.localized(program)), *arguments]


def without_spark(node: Node, folder: Path, run: JobRun) -> list[str]:
    """The same job, its tasks one after the other in its own process."""
    return plain_python(submitted(run)[2][2:], IN_PROCESS)


def gated(gate: Path, units: int) -> ServerlessCommand:
    """The same, but only the first units of work pass before the file `gate` exists."""
    return lambda node, folder, run: plain_python(submitted(run)[2][2:], gated_flow(gate, units))


def without_our_code(node: Node, folder: Path, run: JobRun) -> list[str]:
    """The start of the job by the bare Python of the container: packages are there, code is not."""
    (folder / "code").mkdir()
    (folder / "environment").symlink_to(Path(pyspark.__file__).parents[1])
    _, program, arguments = submitted(run)
    python = str(node.folder / "bin" / f"python{PYTHON}")
    return [python, str(node.localized(program)), *arguments]


def script(text: str) -> ServerlessCommand:
    """Something else instead of the job."""
    return lambda node, folder, run: ["sh", "-c", text]
