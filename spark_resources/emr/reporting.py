"""What the lake knows of a run on EMR while the job itself cannot tell it: before and after it."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

from eventlake.lake import Lake
from eventlake.rules import paths
from eventlake.rules.errors import LakeError, UsageError
from eventlake.runs.context import now
from eventlake.runs.failures import close_failed, failure_of
from eventlake.runs.open_runs import OpenRun, report_failure
from eventlake.runs.publish import catch_up
from eventlake.state.lease import myself, renewed
from eventlake.state.report import RunFacts
from eventlake.storage.documents import decode, encode


@contextmanager
def shown_as_open(lake: Lake, run: RunFacts, before: int) -> Iterator[ExitStack]:
    """Until the job itself does, this process shows that there is a run; to be closed then.

    Should it die meanwhile, whoever comes next finds the run and reports it as failed.
    """
    storage, path = lake.storage, paths.open_run(run.source_id, run.run_id)

    def mine() -> bytes:
        return encode(OpenRun(run, before, myself()))

    def renewal(found: bytes | None) -> bytes | None:
        """Unless the job has taken over, or is even done."""
        holder = decode(found, OpenRun, path).holder if found else None
        return mine() if holder and holder.is_here and holder.pid == os.getpid() else None

    storage.write(path, mine())
    with ExitStack() as until_begun:
        until_begun.enter_context(renewed(lambda: storage.update(path, renewal), path))
        yield until_begun


def report_error_of_job(lake: Lake, run: RunFacts, before: int, error: BaseException) -> None:
    """Of a job that has told its error itself; it has also written its report, if it could."""
    opened = paths.open_run(run.source_id, run.run_id)
    with suppress(LakeError, OSError):
        if run.replay and isinstance(error, UsageError):
            lake.storage.delete(opened)  # refused before it began: whoever asked for it is told
        if not lake.storage.exists(opened):
            return
    report_ended(lake, run, before, error)


def report_ended(lake: Lake, run: RunFacts, before: int, error: BaseException) -> None:
    """A failed report of a job that can do nothing more."""
    catching_up = partial(catch_up, lake.storage, lake.catalog, run.source_id)
    close_failed(lake.storage, lake.catalog, run, before, failure_of(error), catching_up)


def report_left(lake: Lake, run: RunFacts, before: int, error: BaseException) -> None:
    """A failed report of a job that may still be at work.

    Nothing of what it has staged may go, since it could yet commit it: the next run finds it dead
    or finished.
    """
    with suppress(LakeError, OSError):
        report_failure(lake.storage, run, before, now(), failure_of(error))
