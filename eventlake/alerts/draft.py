"""A message before it is one: its title, its lines, and the facts beside them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from eventlake.alerts.state import Ended
from eventlake.settings.models.models import Source

_LENGTH = 1_500  # characters of what others said that are told


@dataclass(frozen=True)
class Draft:
    """A message before it has a number."""

    kind: str
    title: str
    lines: tuple[str, ...]
    fields: Mapping[str, str | int | float] = field(default_factory=dict)
    over: bool = False

    @property
    def text(self) -> str:
        return "\n".join(line for line in self.lines if line)


@dataclass(frozen=True)
class Drafting:
    """Drafts about one source; `ui` is where people see Dagster's pages."""

    source: Source
    now: datetime
    ui: str | None = None

    def draft(
        self,
        kind: str,
        title: str,
        *lines: str,
        run: Ended | None = None,
        over: bool = False,
        since: datetime | None = None,
        about: Mapping[str, str | int | float] | None = None,
    ) -> Draft:
        link = self._link(run) if run else ""
        facts: dict[str, str | int | float] = {"source_id": self.source.id, **(about or {})}
        if since is not None:
            facts["since"] = since.astimezone(UTC).isoformat(timespec="seconds")
        if run is not None:
            facts |= {"run_id": run.run_id, "dagster_run_id": run.dagster_run_id, "link": link}
        whole = f"{self.source.slug}: {title}"
        shown = f"Run: {link}" if link else ""
        fields = {name: value for name, value in facts.items() if value != ""}
        return Draft(kind, whole, (whole, *lines, shown), fields, over)

    def _link(self, run: Ended) -> str:
        if self.ui and run.dagster_run_id:
            return f"{self.ui}/runs/{run.dagster_run_id}"
        if run.run_id:
            return f"`datalake reports --run {run.run_id}`"
        return f"Dagster run {run.dagster_run_id}" if run.dagster_run_id else ""


def cut(text: str) -> str:
    told = " ".join(text.split())
    return told if len(told) <= _LENGTH else f"{told[:_LENGTH]} …"


def plural(count: int, noun: str) -> str:
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def moment(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def span(now: datetime, since: datetime) -> str:
    minutes = max(int((now - since).total_seconds() // 60), 0)
    days, hours = divmod(minutes // 60, 24)
    if days:
        return f"{days} d {hours} h" if hours else f"{days} d"
    return f"{hours} h {minutes % 60} min" if hours else f"{minutes} min"
