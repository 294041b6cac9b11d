"""Access to AWS, for each source: its role is assumed with its external id.

Others would see a change in Glue that is made only as a test. So each permission to change is
tested on a table that does not exist: with the permission, Glue answers that the table is missing,
without it, the call is refused. Permissions to create are tested with the table of sync reports and
its database, which are created if they are missing, and otherwise requested again.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from datalake_assets.preflight.finding import Finding, finding_of
from eventlake.aws.access import AwsAccess
from eventlake.aws.refusals import role_call
from eventlake.catalog import sync_reports
from eventlake.catalog.sync_records import ensure_own_tables
from eventlake.lake import Lake
from eventlake.rules.errors import InvalidSetting
from eventlake.rules.text import plural
from eventlake.settings.models import Settings, Source


def uses_aws(settings: Settings) -> bool:
    on_s3 = settings.storage_uri.startswith("s3://")
    return on_s3 or settings.catalog == "glue" or settings.on_emr


def account_findings(lake: Lake, sources: Sequence[Source]) -> list[tuple[Source, Finding]]:
    """One finding per source, because each may have its own role or external id."""
    return [(source, _account(source)) for source in sources]


def _account(source: Source) -> Finding:
    access = AwsAccess.of(source)
    what = f"{'role' if access.role_arn else 'AWS account'} of {source.slug}"

    def check() -> str:
        with role_call(access):
            identity = access.client("sts").get_caller_identity()
        _refuse_other_account(source, identity["Account"])
        external = f" with external id {access.external_id}" if access.role_arn else ""
        return f"{identity['Arn']}{external}"

    return finding_of(what, check)


def _refuse_other_account(source: Source, account: str) -> None:
    if source.glue_catalog_id not in (None, account):
        raise InvalidSetting(
            f"Eventlake has invalid configuration for `glue_catalog_id`: {source.glue_catalog_id} "
            f"is not the account that we are in, which is {account}. Set "
            f"`glue_catalog_id: '{account}'`, or leave it out."
        )


_ABSENT = "datalake_check_of_rights"
_KEY: dict[str, Any] = {"Values": ["-"]}
_CHANGES: Mapping[str, Mapping[str, Any]] = {
    "update_table": {"TableInput": {"Name": _ABSENT}},
    "batch_create_partition": {"TableName": _ABSENT, "PartitionInputList": [_KEY]},
    "batch_update_partition": {
        "TableName": _ABSENT,
        "Entries": [{"PartitionValueList": _KEY["Values"], "PartitionInput": _KEY}],
    },
    "batch_delete_partition": {"TableName": _ABSENT, "PartitionsToDelete": [_KEY]},
    "batch_get_partition": {"TableName": _ABSENT, "PartitionsToGet": [_KEY]},
    "get_partitions": {"TableName": _ABSENT},
    "get_table": {"Name": _ABSENT},
}


def catalog_finding(lake: Lake) -> Finding:
    def check() -> str:
        databases = lake.catalog.databases()
        tables = sum(len(lake.catalog.tables(database)) for database in databases)
        found = f"{plural(len(databases), 'database')}, {plural(tables, 'table')}"
        return f"{lake.settings.catalog}, {found}"

    return finding_of("catalog", check)


def glue_findings(lake: Lake, sources: Sequence[Source]) -> Iterator[Finding]:
    """The findings about the databases that runs of these sources change."""
    reports = sync_reports.DATABASE
    yield finding_of(f"database {reports}", partial(_reports, lake.for_source(sources[0])))
    for database, source in {source.database: source for source in sources}.items():
        own = lake.for_source(source)
        yield finding_of(f"database {database}", partial(_changeable, own, database))


def _reports(lake: Lake) -> str:
    ensure_own_tables(lake.catalog)
    return _changeable(lake, sync_reports.DATABASE)


def _changeable(lake: Lake, database: str) -> str:
    from botocore.exceptions import ClientError

    from eventlake.catalog.glue import GlueCatalog
    from eventlake.catalog.glue.calls import EXISTS, NOT_FOUND, code_of

    assert isinstance(lake.catalog, GlueCatalog)
    calls = lake.catalog.calls

    def attempt(operation: str, about: str, expected: str, **arguments: Any) -> None:
        try:
            calls.call(operation, about, **arguments)
        except ClientError as error:
            if code_of(error) != expected:
                raise

    for operation, arguments in _CHANGES.items():
        absent = f"{database}.{_ABSENT}"
        attempt(operation, absent, NOT_FOUND, DatabaseName=database, **arguments)
    known = lake.catalog.names(database)
    if known is None:
        taken = sync_reports.DATABASE
        attempt("create_database", database, EXISTS, DatabaseInput={"Name": taken})
        return "not there yet; the first sync makes it"
    return f"tables may be made and changed; there are {len(known)}"
