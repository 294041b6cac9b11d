"""Failed runs: each gets a report with the reason, wherever one can be written."""

import errno
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from eventlake.catalog.base import Catalog
from eventlake.clouds import as_lake_error
from eventlake.rules import paths
from eventlake.rules.counts import UnitReport
from eventlake.rules.errors import DiskFull, LakeError, UsageError
from eventlake.runs.context import now
from eventlake.runs.open_runs import close_failed_run, committed, opened_run, write_failure
from eventlake.state.report import Failure, RunFacts
from eventlake.storage import Storage

_NUMBERS = (errno.ENOSPC, errno.EDQUOT)
_WORDS = ("No space left on device", "Disk quota exceeded")


def full_disk(error: BaseException) -> DiskFull | None:
    """The error as an error of the lake; None if it is unknown.

    Spark reports errors of tasks and of Java as text.
    """
    text = str(error)
    if getattr(error, "errno", None) not in _NUMBERS and not any(w in text for w in _WORDS):
        return None
    line = next(
        (line.strip() for line in text.splitlines() if any(w in line for w in _WORDS)), text
    )
    return DiskFull(
        f"A disk is full: {line}. What was published before stays, nothing of the rest was, and "
        "nothing is lost. Make room where the lake lies and where Spark keeps its temporary files "
        "(SPARK_LOCAL_DIRS, else the system's folder for them), then run it again."
    )


CANCELLED = Failure("Segment.Internal", "The run was cancelled before it was done.")
REFUSED = "Refused, nothing was changed: "
"""The beginning of the error of a refused replay: nothing is wrong with the source."""
_NOTHING_COMMITTED = sys.maxsize  # the number of a manifest that has no successor


@contextmanager
def failure_reported(storage: Storage, catalog: Catalog, run: RunFacts) -> Iterator[None]:
    """Convert errors to errors of the lake, and report them, even if the run did not begin."""
    try:
        yield
    except Exception as error:
        refusal, failure = as_lake_error(error) or full_disk(error), failure_of(error)
        if run.replay and isinstance(refusal, UsageError):
            failure = Failure(failure.error_code, f"{REFUSED}{failure.error}")
        _report_unopened(storage, catalog, run, failure)
        if refusal is None or refusal is error:
            raise
        raise refusal from error


def close_failed(
    storage: Storage,
    catalog: Catalog,
    run: RunFacts,
    after_manifest: int,
    failure: Failure,
    catch_up: Callable[[], object],
) -> None:
    """End a run that was opened; the next run completes what fails here.

    Its commits are applied first, since they may need staged files. If that or the rest is refused,
    a report is written at least. If the run has committed all its work, the report becomes a
    finished one when the commits are applied later.
    """
    try:
        catch_up()
        # First, because on a full disk this frees space for the report.
        storage.delete_folder(paths.stage(run.source_id, run.run_id))
        close_failed_run(storage, catalog, run, after_manifest, now(), failure)
    except Exception:
        _report_only(storage, run, after_manifest, failure)


def _report_only(storage: Storage, run: RunFacts, after_manifest: int, failure: Failure) -> None:
    done = UnitReport()
    with suppress(Exception):
        done = committed(storage, run, after_manifest)
    with suppress(Exception):
        write_failure(storage, run, done, now(), failure)


def failure_of(error: BaseException) -> Failure:
    """The error code and message of a report."""
    if isinstance(error, KeyboardInterrupt) or type(error).__name__.endswith("InterruptedError"):
        return CANCELLED
    if isinstance(error, GeneratorExit):
        return Failure("Segment.Internal", "The run was stopped between two units of its work.")
    known = error if isinstance(error, LakeError) else as_lake_error(error) or full_disk(error)
    if known is not None:
        return Failure(known.error_code, str(known))
    return Failure("Segment.Internal", _in_a_line(error))


def _report_unopened(storage: Storage, catalog: Catalog, run: RunFacts, failure: Failure) -> None:
    try:
        if storage.read(paths.report(run.source_id, run.day, run.run_id)) is not None:
            return
        if storage.read(paths.open_run(run.source_id, run.run_id)) is not None:
            return  # it is open, and the next run closes it
        # Registered as open, so that the next run completes what fails now.
        with opened_run(storage, run, _NOTHING_COMMITTED):
            close_failed_run(storage, catalog, run, _NOTHING_COMMITTED, now(), failure)
    except Exception:
        _report_only(storage, run, _NOTHING_COMMITTED, failure)


def _in_a_line(error: BaseException) -> str:
    """The error without the stack trace that Spark adds."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    traced = any(line.startswith("Traceback") for line in lines)
    text = lines[-1].strip() if traced else " ".join(lines)
    return text if traced else f"{type(error).__name__}: {text}"
