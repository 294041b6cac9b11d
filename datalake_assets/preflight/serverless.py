"""The application on EMR Serverless: ours to use, and able to run our jobs.

The right to start job runs is tried with a request that EMR Serverless refuses as invalid, unless
it refuses the permission.
"""

from collections.abc import Iterator, Sequence
from functools import partial

from datalake_assets.preflight.finding import Finding, Remark, finding_of
from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import aws_call
from eventlake.rules.errors import InvalidSetting
from eventlake.settings.models import Source
from spark_resources.engines.emr.cluster import VENDOR_TAG
from spark_resources.engines.emr.serverless import Application, ServerlessClient

_READY = ("CREATED", "STARTED", "STOPPED", "STARTING", "STOPPING")


def application_findings(sources: Sequence[Source]) -> Iterator[Finding]:
    """Each application with its role once, as the first of its sources sees it."""
    found: dict[tuple[str, str], Source] = {}
    for source in sources:
        # Settings without them are refused.
        key = (source.emr_serverless_application_id or "", source.execution_role_arn or "")
        found.setdefault(key, source)
    for (application_id, role), source in found.items():
        access = AwsAccess.of(source)
        what = f"application {application_id}"
        finding = finding_of(what, partial(_application, access, application_id))
        yield finding
        if finding.error is None:
            jobs = partial(_jobs, access, application_id, role)
            yield finding_of(f"job runs of {application_id}", jobs)


def _application(access: AwsAccess, application_id: str) -> str:
    application = ServerlessClient(access).application(application_id)
    application.refuse_unusable()
    _refuse_untagged(application)
    if application.state not in _READY:
        raise Remark(f"is {application.state}; syncs wait until it is ready")
    if not application.described.get("autoStartConfiguration", {}).get("enabled", True):
        raise Remark("does not start by itself when a job is submitted: switch auto-start on")
    return f"{application.state}, {application.release}, tagged vendor=segment"


def _refuse_untagged(application: Application) -> None:
    key, value = VENDOR_TAG["Key"], VENDOR_TAG["Value"]
    if application.described.get("tags", {}).get(key) != value:
        raise InvalidSetting(
            "Eventlake has invalid configuration for `emr_serverless_application_id`: EMR "
            f"Serverless application {application.id} lacks the tag {key}={value}, without which "
            "the role of docs/aws.md may not use it. Run `aws emr-serverless tag-resource "
            f"--resource-arn {application.described['arn']} --tags {key}={value}`."
        )


def _jobs(access: AwsAccess, application_id: str, role: str) -> str:
    from botocore.exceptions import ClientError

    try:
        with aws_call(application_id):
            # Without a program, it cannot run.
            access.client("emr-serverless").start_job_run(
                applicationId=application_id,
                executionRoleArn=role,
                executionTimeoutMinutes=1,
                tags={VENDOR_TAG["Key"]: VENDOR_TAG["Value"]},
            )
    except ClientError:
        return f"may be started, with {role}"
    return "may be started"
