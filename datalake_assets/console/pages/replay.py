"""Replays: dry run, launch, watch."""

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from datalake_assets.console.access import audit
from datalake_assets.console.asked import Asked, BadRequest, Elsewhere
from datalake_assets.console.pages.runs import RunningLine, running
from eventlake.rules.clock import now, parse_range
from eventlake.rules.errors import UsageError, did_you_mean
from eventlake.settings.models import Source

if TYPE_CHECKING:
    from datalake_assets.console.app import Console


@dataclass(frozen=True, slots=True)
class JobLine:
    id: str
    source: str
    command: str
    user: str
    dry_run: bool
    started: datetime
    running: bool
    failed: bool
    output: str
    answer: Any


@dataclass(frozen=True, slots=True)
class ReplayPage:
    sources: tuple[str, ...]
    source: str
    first: str
    end: str
    chosen: tuple[str, ...]
    tables: tuple[str, ...]
    first_day: str  # that has rows
    last_day: str
    job: JobLine | None
    running: tuple[RunningLine, ...]
    jobs: tuple[JobLine, ...]


def replay(asked: Asked, console: "Console") -> ReplayPage | Elsewhere:
    slugs = tuple(source.slug for source in asked.my.sources)
    source = asked.my.lake.settings.source(asked.source() or slugs[0])
    chosen = tuple(filter(None, asked.text("table", 20_000).split("\n")))
    first, end = asked.text("from", 20), asked.text("to", 20)
    state = asked.my.past.state(asked.my.lake, source)
    known = sorted(state.tables_of(source))
    for one in chosen:
        if one not in known:
            raise BadRequest(f"{source.slug} has no table {one!r}{did_you_mean(one, known)}.")
    if asked.posted:
        return _started_job(asked, console, source, first, end, chosen)
    jobs = [_job_line(job) for job in reversed(console.replays.jobs.values())]
    asked_job = asked.text("job", 20)
    job = next((one for one in jobs if one.id == asked_job), None)
    if asked_job and job is None:
        raise UsageError(f"This console has started no job {asked_job!r}, or has been restarted.")
    days = sorted(
        {day for one in asked.my.past.volumes(asked.my.lake, source).values() for day in one}
    )
    last = date.fromisoformat(days[-1]) if days else now().date()
    return ReplayPage(
        sources=slugs,
        source=source.slug,
        first=first or str(last),
        end=end or str(last + timedelta(days=1)),
        chosen=chosen,
        tables=tuple(known),
        first_day=days[0] if days else "",
        last_day=days[-1] if days else "",
        job=job,
        running=tuple(r for r in running(asked, source) if r.kind == "replay"),
        jobs=tuple(jobs),
    )


def _started_job(
    asked: Asked, console: "Console", source: Source, first: str, end: str, chosen: tuple[str, ...]
) -> Elsewhere:
    parse_range(first, end)
    dry_run = asked.one_of("action", ("dry-run", "replay"), "dry-run") == "dry-run"
    words = ["replay", "--source", source.slug, "--from", first, "--to", end]
    words += [word for one in chosen for word in ("--table", one)]
    audit(asked.user, "dry run" if dry_run else "replay", command=" ".join(words))
    words += ["--dry-run", "--json"] if dry_run else ["--json"]
    job = console.replays.start(words, asked.user.name, source.slug, dry_run)
    query = {"source": source.slug, "from": first, "to": end, "job": job.id}
    return Elsewhere(f"/replay?{urlencode(query)}")


def _job_line(job: Any) -> JobLine:
    answer = job.answer()
    return JobLine(
        job.id,
        job.source,
        job.command,
        job.user,
        job.dry_run,
        job.started,
        job.running,
        job.failed,
        job.output(),
        answer[0] if isinstance(answer, list) and answer else None,
    )
