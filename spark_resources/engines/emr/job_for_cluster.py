"""A job as it goes to a cluster: with what is known only here, without what must not go there."""

import msgspec

from eventlake.aws.access import AwsAccess
from spark_resources.dataflow.job import LakeJob

_ROLE = ("iam_role_arn", "external_id")


def abroad(job: LakeJob, access: AwsAccess) -> LakeJob:
    """A cluster has a role of its own, and knows neither ours nor its region."""
    region = access.region_name()
    settings = {**job.settings_json, "region": region}
    settings["sources"] = [
        {**source, "region": region, **dict.fromkeys(_ROLE)} for source in settings["sources"]
    ]
    settings.update(dict.fromkeys(_ROLE))
    return msgspec.structs.replace(job, settings_json=settings)
