"""Run jobs of the lake in ops: logs go to Dagster, errors become failures with a remedy."""

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

import dagster as dg

from eventlake.aws.permissions import granted_by
from eventlake.aws.refusals import as_lake_error
from eventlake.rules.clock import new_run_id, now
from eventlake.rules.errors import LakeError
from eventlake.runs.context import Published
from eventlake.runs.unit import Window
from eventlake.settings.models import Settings, Source
from spark_resources.dataflow.job import LakeJob


@dataclass(frozen=True)
class DagsterListener:
    """Writes the messages of a run to Dagster's log."""

    log_manager: dg.DagsterLogManager

    def log(self, message: str) -> None:
        self.log_manager.info(message)

    def warn(self, message: str) -> None:
        self.log_manager.warning(message)


def new_job(
    settings: Settings,
    source: Source,
    dagster_run_id: str,
    days: tuple[datetime, datetime] | None = None,
    window: Window | None = None,
    tables: tuple[str, ...] | None = None,
    accept_changes: bool = False,
    dry_run: bool = False,
) -> LakeJob:
    """A job that begins now."""
    return LakeJob(
        settings_json=settings.for_jobs(),
        source_id=source.id,
        run_id=new_run_id(),
        start_time=now(),
        dagster_run_id=dagster_run_id,
        days=None if days is None else (days[0].date(), days[1].date()),
        window=None if window is None else (window.start, window.end),
        tables=tables,
        accept_changes=accept_changes,
        dry_run=dry_run,
    )


@contextmanager
def forwarding_errors(units: Iterator[Published]) -> Iterator[Iterator[Published]]:
    """The units of a run. An error in their consumer reaches the run, which reports it."""
    try:
        yield units
    except BaseException as error:
        if isinstance(units, Generator):
            units.throw(error)  # comes back at once where the run itself has ended by it
        raise


@contextmanager
def as_dagster_failure() -> Iterator[None]:
    """Turn errors of the lake into failures without a stack trace and without retries."""
    try:
        yield
    except Exception as error:
        told = as_lake_error(error)
        if told is None:
            raise
        raise dg.Failure(str(told), failure_metadata(told), allow_retries=False) from None


def failure_metadata(error: LakeError) -> dict[str, dg.MetadataValue]:
    """What the UI and the command line show besides the message."""
    shown: dict[str, dg.MetadataValue] = {
        "error_code": dg.MetadataValue.text(error.error_code),
        "exit_code": dg.MetadataValue.int(error.exit_code),
    }
    if granted := granted_by(str(error)):
        shown["policy_statement_to_grant"] = dg.MetadataValue.json(granted)
    return shown
