"""Preflight checks: whether runs will work, tested in advance and without lasting changes."""

import logging
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from datalake_assets.instance.home import ensure_home
from datalake_assets.instance.schedules import Schedules
from datalake_assets.preflight.archive import archive_findings, waiting_files
from datalake_assets.preflight.aws import account_findings, catalog_finding, glue_findings, uses_aws
from datalake_assets.preflight.finding import Finding, finding_of
from datalake_assets.preflight.storage import folder_finding
from eventlake.lake import Lake
from eventlake.rules.errors import (
    InsufficientPermissions,
    InvalidSetting,
    LakeError,
    ServiceTrouble,
    UsageError,
)
from eventlake.settings.models import Source
from spark_resources.engines.java import require_java

__all__ = ["Finding", "before_run", "findings", "prepare", "require"]

if TYPE_CHECKING:
    from eventlake.alerts.channels import Channel

_FOUND_BY_RUNS = (InsufficientPermissions, InvalidSetting, ServiceTrouble)


def findings(
    lake: Lake, sources: Iterable[Source], schedules: Schedules | None = None
) -> Iterator[Finding]:
    """Run all checks; files that are written to test permissions are removed."""
    sources = list(sources)
    if uses_aws(lake.settings):
        accounts = account_findings(lake, sources)
        yield from (finding for _, finding in accounts)
        # Without its role, nothing else of a source can be tested.
        sources = [source for source, finding in accounts if finding.error is None]
        if not sources:
            return
    # Modules for AWS are imported late: lakes in folders do not need them.
    if lake.settings.storage_uri.startswith("s3://"):
        from datalake_assets.preflight.storage import bucket_findings

        found = list(bucket_findings(lake.for_source(sources[0])))
    elif lake.settings.storage_uri.startswith("abfss://"):
        from datalake_assets.preflight.azure import container_findings

        found = list(container_findings(lake.for_source(sources[0])))
    else:
        found = [folder_finding(lake.settings)]
    yield from found
    readable = "://" not in lake.settings.storage_uri or found[0].error is None
    catalog = catalog_finding(lake.for_source(sources[0]))
    for source in sources if readable else ():
        own, closely = lake.for_source(source), catalog.error is None
        yield from archive_findings(own, source, schedules, closely=closely)
    yield catalog
    if lake.settings.catalog == "glue":
        yield from glue_findings(lake, sources)
    elif lake.settings.catalog == "hive":
        from datalake_assets.preflight.azure import hive_finding

        yield hive_finding(lake.for_source(sources[0]))
    yield from _engine_findings(lake, sources, readable)
    if any(source.alerts.has_recipients for source in sources):
        yield from _alert_findings(sources)


def _engine_findings(lake: Lake, sources: list[Source], readable: bool) -> Iterator[Finding]:
    if lake.settings.engine == "emr":
        from datalake_assets.preflight.spark import cluster_findings

        yield from cluster_findings(lake, sources)
        return
    if lake.settings.engine == "emr-serverless":
        from datalake_assets.preflight.serverless import application_findings

        yield from application_findings(sources)
        return
    java = java_finding()
    yield java
    if lake.settings.engine.startswith("spark://") and readable and java.error is None:
        from datalake_assets.preflight.spark import spark_cluster_findings

        yield from spark_cluster_findings(lake.for_source(sources[0]))


def before_run(lake: Lake, sources: Iterable[Source]) -> Iterator[Finding]:
    """Checks that are fast; the run itself reports errors of AWS."""
    if not lake.settings.on_emr:
        yield java_finding()
    if "://" in lake.settings.storage_uri:
        return
    yield folder_finding(lake.settings)
    for source in sources:
        yield from archive_findings(lake.for_source(source), source)
    if lake.settings.catalog == "local":
        yield catalog_finding(lake)


def require(found: Iterable[Finding]) -> None:
    """Raise all errors at once."""
    errors = [f.error for f in found if f.error and not isinstance(f.error, _FOUND_BY_RUNS)]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise UsageError("\n".join([f"{len(errors)} problems prevent the run.", *map(str, errors)]))


def prepare(lake: Lake, sources: Sequence[Source], *, replay: bool = False) -> None:
    """Raise if the runs cannot work, before anything is written; otherwise prepare them.

    Starts Spark in the background if this process will read raw files.
    """
    require(before_run(lake, sources))
    ensure_home(lake.settings)
    # On Ctrl-C, py4j would log three stack traces of broken connections.
    logging.getLogger().addFilter(lambda record: "py4j" not in record.pathname)
    in_a_folder = "://" not in lake.settings.storage_uri
    if lake.settings.engine == "local" and in_a_folder and (replay or _files_wait(lake, sources)):
        from spark_resources.engines.session import start_early

        start_early()


def _files_wait(lake: Lake, sources: Iterable[Source]) -> bool:
    try:
        return any(waiting_files(lake.for_source(one), one) for one in sources)
    except (LakeError, OSError):
        return False  # the run reports it


def java_finding() -> Finding:
    return finding_of("Java", lambda: f"version {require_java()}")


def _alert_findings(sources: Iterable[Source]) -> Iterator[Finding]:
    from eventlake.alerts.delivery import distinct

    for way, channel, _ in distinct(sources, os.environ):
        yield finding_of(f"alerts by {way}", partial(_try_channel, channel))


def _try_channel(channel: "Channel") -> str:
    from eventlake.alerts.channels import NotSent

    try:
        return channel.check()
    except NotSent as error:
        raise ServiceTrouble(f"Alerts would not come through: {error}") from None
