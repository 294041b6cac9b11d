"""The alerts sensor: evaluates every source each minute and sends what is due."""

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import dagster as dg
import msgspec
from dagster import DagsterEventType as Event

from datalake_assets.assets.keys import (
    NAMES,
    Names,
    checked_name,
    is_table_of,
    raw_archive,
    reports,
    sync,
    upkeep,
)
from datalake_assets.assets.running import RunError, run_error
from datalake_assets.instance.links import console_url
from datalake_assets.sensors.reload import WEBSERVER_VARIABLE
from eventlake.alerts.delivery import Evaluation
from eventlake.alerts.run_status import CheckRun, EndedRun, Outcome, RunStatus, Verdict
from eventlake.lake import Lake
from eventlake.rules.errors import LakeError
from eventlake.runs.context import now
from eventlake.settings.models import Source

_WILL_RETRY = "dagster/will_retry"
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_AT_ONCE = 200  # runs per evaluation
_OVERLAP = timedelta(seconds=30)  # runs may be stored out of order
_WRONG_USE = 2  # exit code: the request itself was refused
_EVIDENCE = 4  # numbers of a check in a message


@dataclass
class EndedRuns:
    """Runs that ended since a timestamp, by source."""

    until: datetime
    failures: dict[str, list[EndedRun]] = field(default_factory=dict)  # by source id
    check_runs: dict[str, list[CheckRun]] = field(default_factory=dict)


def ended_runs(
    instance: dg.DagsterInstance, sources: Sequence[Source], since: datetime, names: Names
) -> EndedRuns:
    """A bounded number of runs; the next evaluation continues with the rest."""
    filters = dg.RunsFilter(statuses=_ENDED, updated_after=since - _OVERLAP)
    records = instance.get_run_records(
        filters, limit=_AT_ONCE, order_by="update_timestamp", ascending=True
    )
    found = EndedRuns(since)
    for record in records:
        found.until = max(found.until, _utc(record.update_timestamp))
        _take(found, instance, sources, record, names)
    return found


def status_of(instance: dg.DagsterInstance, dagster_run_id: str) -> RunStatus | None:
    run = instance.get_run_by_id(dagster_run_id)
    if run is None:
        return None
    return RunStatus(
        work=run.root_run_id or run.run_id,
        over=run.is_finished,
        failed=run.status is dg.DagsterRunStatus.FAILURE,
        will_retry=_will_retry(run),
    )


def _take(
    found: EndedRuns,
    instance: dg.DagsterInstance,
    sources: Sequence[Source],
    record: dg.RunRecord,
    names: Names,
) -> None:
    run = record.dagster_run
    failed = run.status is dg.DagsterRunStatus.FAILURE
    mine = [(source, replay) for source in sources for replay in _loads(run, source, names)]
    if failed and not _will_retry(run):
        for source, replay in mine:
            if (attempt := _failure(instance, record, replay)) is not None:
                found.failures.setdefault(source.id, []).append(attempt)
    if failed and mine:
        return  # its checks stopped it: the failure of the run is reported
    verdicts: dict[str, list[Verdict]] = {}
    for evaluation in _evaluations(instance, run.run_id):
        key = names.untranslated(evaluation.asset_key)
        if (owner := owner_of(key, sources)) is not None:
            verdicts.setdefault(owner.id, []).append(_verdict(evaluation, key, owner))
    for source_id, said in verdicts.items():
        one = CheckRun(run.run_id, _ended(record), tuple(said))
        found.check_runs.setdefault(source_id, []).append(one)


def _loads(run: dg.DagsterRun, source: Source, names: Names) -> Iterator[bool]:
    """False if the run is a sync of the source, True if a replay, nothing if neither."""
    selected = [names.untranslated(key) for key in run.asset_selection or ()]
    if run.job_name == names.sync_job(source) or sync(source).key in selected:
        yield False
    elif run.job_name == names.replay_job(source) or any(
        is_table_of(source, key) for key in selected
    ):
        yield True


def owner_of(key: dg.AssetKey, sources: Sequence[Source]) -> Source | None:
    """The source of an asset; where prefixes overlap, the one with the longest."""
    for source in sources:
        if key in [of(source).key for of in (reports, raw_archive, sync, upkeep)]:
            return source
    mine = [source for source in sources if is_table_of(source, key)]
    return max(mine, key=lambda source: len(source.table_prefix or ""), default=None)


def _failure(instance: dg.DagsterInstance, record: dg.RunRecord, replay: bool) -> EndedRun | None:
    """A failed run; it may have ended before it wrote a report."""
    run = record.dagster_run
    error = _error_of(instance, run.run_id)
    if replay and error.exit_code == _WRONG_USE:
        return None
    ended = _ended(record)
    started = datetime.fromtimestamp(record.start_time, UTC) if record.start_time else ended
    return EndedRun(
        id=run.run_id,
        work=run.root_run_id or run.run_id,
        replay=replay,
        outcome=Outcome.FAILED,
        started=started,
        ended=ended,
        dagster_run_id=run.run_id,
        error_code=error.code,
        error=error.message,
    )


def _error_of(instance: dg.DagsterInstance, run_id: str) -> RunError:
    failures = {Event.STEP_FAILURE, Event.RUN_FAILURE}
    records = instance.get_records_for_run(run_id, of_type=failures, limit=5).records
    return run_error(e for one in records if (e := one.event_log_entry.dagster_event))


def _evaluations(instance: dg.DagsterInstance, run_id: str) -> Iterator[dg.AssetCheckEvaluation]:
    cursor, more = None, True
    while more:
        page = instance.get_records_for_run(
            run_id, cursor=cursor, of_type=Event.ASSET_CHECK_EVALUATION, limit=1_000
        )
        cursor, more = page.cursor, page.has_more
        for record in page.records:
            event = record.event_log_entry.dagster_event
            if event is not None:
                yield event.asset_check_evaluation_data


def _verdict(evaluation: dg.AssetCheckEvaluation, key: dg.AssetKey, owner: Source) -> Verdict:
    remedy = evaluation.metadata.get("what_to_do")
    return Verdict(
        table=checked_name(key, owner),
        check=evaluation.check_name,
        passed=evaluation.passed,
        warning=evaluation.severity is dg.AssetCheckSeverity.WARN,
        evidence=_evidence(evaluation),
        remedy=str(remedy.value) if remedy else "",
    )


def _evidence(said: dg.AssetCheckEvaluation) -> str:
    """The problems that a check of the lake lists; the metadata of other checks."""
    if said.passed:
        return ""
    if (problems := said.metadata.get("first_problems")) is not None:
        return str(problems.value).removeprefix("- ").replace("\n- ", "; ")
    numbers = [f"{name} {value.value}" for name, value in said.metadata.items()]
    return ", ".join(numbers[:_EVIDENCE])


def _will_retry(run: dg.DagsterRun) -> bool:
    return run.tags.get(_WILL_RETRY) == "true"


def _ended(record: dg.RunRecord) -> datetime:
    if record.end_time:
        return datetime.fromtimestamp(record.end_time, UTC)
    return _utc(record.update_timestamp)


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


_SECONDS = 40  # of the sixty that a sensor has; the next evaluation does the rest
_PATIENCE = timedelta(minutes=15)  # for a source that cannot be evaluated
_AT_FIRST = timedelta(hours=1)  # that the first evaluation goes back in Dagster


class _Cursor(msgspec.Struct, frozen=True):
    """The position in Dagster's runs, and the next source to evaluate."""

    until: datetime
    source: str = ""


def alert(lake: Lake, names: Names = NAMES) -> dg.SensorDefinition:
    """Started by default if a source has recipients."""
    wanted = any(source.alerts.has_recipients for source in lake.settings.sources)
    status = dg.DefaultSensorStatus

    @dg.sensor(
        name=names.of("alerts"),
        minimum_interval_seconds=60,
        default_status=status.RUNNING if wanted else status.STOPPED,
        description="Sends alerts about failed runs, failed checks and missing data, once each.",
    )
    def sensor(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        lines, cursor = evaluate(lake, context.instance, context.cursor, now(), names)
        context.update_cursor(cursor)
        return dg.SkipReason("\n".join(lines) or "Nothing to report.")

    return sensor


def evaluate(
    lake: Lake,
    instance: dg.DagsterInstance,
    cursor: str | None,
    at: datetime,
    names: Names = NAMES,
) -> tuple[list[str], str]:
    """Evaluate all sources, or as many as there is time for; returns log lines and the cursor."""
    sources = [s for s in lake.settings.sources if s.alerts.has_recipients]
    if not sources:
        return ["`alerts` in lake.yaml names no recipients."], cursor or ""
    begun = msgspec.json.decode(cursor, type=_Cursor) if cursor else _Cursor(at - _AT_FIRST)
    end = time.monotonic() + _SECONDS

    def is_time_up() -> bool:
        return time.monotonic() > end

    runs = ended_runs(instance, lake.settings.sources, begun.until, names)
    evaluation = Evaluation(
        lake,
        at,
        os.environ,
        ui_url(),
        lambda id: status_of(instance, id),
        is_time_up,
        console=lambda source: console_url(source, ui_url() or ""),
    )
    lines: list[str] = []
    complete = True
    left = list(_from(sources, begun.source))
    while left and not is_time_up():
        source = left.pop(0)
        try:
            failures, checks = runs.failures.get(source.id, ()), runs.check_runs.get(source.id, ())
            lines += evaluation.evaluate(source, failures, checks)
        except (LakeError, OSError) as error:
            lines.append(f"{source.slug} could not be evaluated: {error}")
            complete = False
    # Repeat the same runs until every source is evaluated, up to a limit.
    again = (left or not complete) and at - begun.until < _PATIENCE
    following = left[0].slug if left else ""
    cursor = msgspec.json.encode(_Cursor(begun.until if again else runs.until, following)).decode()
    return lines, cursor


def ui_url() -> str | None:
    """The URL of the webserver that `datalake dev` started."""
    server = os.environ.get(WEBSERVER_VARIABLE)
    return f"http://{server}" if server else None


def _from(sources: list[Source], slug: str) -> Iterator[Source]:
    """All sources, starting with one."""
    first = next((n for n, source in enumerate(sources) if source.slug == slug), 0)
    yield from sources[first:]
    yield from sources[:first]
