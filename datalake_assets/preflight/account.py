"""Who we are on AWS, for each source: its role is assumed with its external id."""

from collections.abc import Sequence

from datalake_assets.preflight.finding import Finding, looked
from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import role_call
from eventlake.lake import Lake
from eventlake.rules.errors import InvalidSetting
from eventlake.settings.models import Settings, Source


def uses_aws(settings: Settings) -> bool:
    on_s3 = settings.storage_uri.startswith("s3://")
    return on_s3 or settings.catalog == "glue" or settings.engine == "emr"


def account_findings(lake: Lake, sources: Sequence[Source]) -> list[tuple[Source, Finding]]:
    """One for each source, since each may have a role or an external id of its own."""
    return [(source, _account(source)) for source in sources]


def _account(source: Source) -> Finding:
    access = AwsAccess.of(source)
    what = f"{'role' if access.role_arn else 'AWS account'} of {source.slug}"

    def look() -> str:
        with role_call(access):
            identity = access.client("sts").get_caller_identity()
        _refuse_other_account(source, identity["Account"])
        told = f" with external id {access.external_id}" if access.role_arn else ""
        return f"{identity['Arn']}{told}"

    return looked(what, look)


def _refuse_other_account(source: Source, account: str) -> None:
    if source.glue_catalog_id not in (None, account):
        raise InvalidSetting(
            f"Data lake has invalid configuration for `glue_catalog_id`: {source.glue_catalog_id} "
            f"is not the account that we are in, which is {account}. Set "
            f"`glue_catalog_id: '{account}'`, or leave it out."
        )
