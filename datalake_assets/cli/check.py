"""`datalake check`: whether a run would work, told before it is tried."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from datalake_assets.cli.invocation import AsJson, chosen_sources, invocation
from datalake_assets.cli.output import note, out, print_json, say, working
from datalake_assets.cli.text import plain, plural
from datalake_assets.instance.home import VARIABLE, home_of
from datalake_assets.preflight import Finding, findings
from datalake_assets.preflight.archive import Schedules
from eventlake.catalog.sync_reports import ensure_reports_table
from eventlake.checks.freshness import check_freshness
from eventlake.checks.published import TableChecks
from eventlake.lake import Lake
from eventlake.rules.errors import LakeError
from eventlake.runs.context import now
from eventlake.runs.verify import CheckResult, Severity
from eventlake.settings.models import Source

if TYPE_CHECKING:
    import dagster as dg


def check(
    context: typer.Context,
    tables: Annotated[
        bool, typer.Option("--tables", help="Look at what is published, not at settings.")
    ] = False,
    source: Annotated[
        str | None, typer.Option(help="With --tables: slug or id. Default: all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check settings, access and engine; say what to fix and why data may be missing.

    Changes nothing that lasts, but for the empty table of sync reports. On AWS it writes small
    files to the bucket and removes them; rights on Glue and EMR are tried without any change.
    With --tables it holds catalog, files and schemas against what was published, and changes
    nothing at all; what is wrong with the data ends it with exit code 1.

    \b
    Examples:
      datalake check
      datalake check --tables --source ios_prod
      datalake --config shop/lake.yaml check --json
    """
    asked = invocation(context)
    if tables:
        raise typer.Exit(check_tables(asked.lake(), source, as_json))
    if source is not None:
        raise typer.BadParameter("goes with --tables only", param_hint="--source")
    found = look(asked.file(), asked.lake())
    if as_json:
        print_json([_as_dict(finding) for finding in found])
    else:
        show_findings(found)
    raise typer.Exit(max((_exit_code(f.error) for f in found if f.error), default=0))


def _exit_code(error: LakeError) -> int:
    """Of a setting that runs would find wrong this is the time to say so."""
    return 2 if error.error_code == "Segment.InvalidSettings" else error.exit_code


def look(file: Path, lake: Lake) -> list[Finding]:
    """Every finding; where nothing is wrong, asking for reports is no error from now on."""
    sources = lake.settings.sources
    read = Finding("settings", f"{file}, {plural(len(sources), 'source')}")
    found = [read, *findings(lake, sources, _schedules(lake))]
    if not any(finding.error for finding in found):
        ensure_reports_table(lake.catalog)
    return found


def _schedules(lake: Lake) -> Schedules | None:
    """Of the Dagster that has run here; where there was none, there is nothing to say."""
    home = home_of(lake.settings)
    if not (home / "dagster.yaml").exists():
        return None

    def instance() -> "dg.DagsterInstance":
        import dagster as dg

        os.environ[VARIABLE] = str(home)
        return dg.DagsterInstance.from_config(str(home))

    return Schedules(instance)


def show_findings(found: list[Finding]) -> None:
    styles = {"error": "bold red", "warning": "yellow", "ok": "green"}
    table = Table.grid(padding=(0, 2, 0, 0))
    for one in found:
        sign = Text(one.sign, styles[one.level])
        table.add_row(sign, Text(one.what, "bold", no_wrap=True), Text(one.message))
    out().print(table)


def _as_dict(finding: Finding) -> dict[str, str]:
    return {"what": finding.what, "level": finding.level, "seen": finding.message}


def check_tables(lake: Lake, slug: str | None, as_json: bool) -> int:
    """Show the verdicts; the exit code is 1 if data is wrong."""
    sources = chosen_sources(lake, slug)
    results: list[CheckResult] = []
    for source in sources:
        with working(f"checking {source.slug}"):
            found = list(_results(lake, source))
        results += found
        if not as_json:
            _tell(source, found)
    if as_json:
        print_json([_check_as_dict(result) for result in results])
    return int(any(not r.passed and r.severity is Severity.ERROR for r in results))


def _results(lake: Lake, source: Source) -> Iterator[CheckResult]:
    yield check_freshness(lake, source, now())
    yield from TableChecks(lake, source, now()).run()


def _tell(source: Source, results: list[CheckResult]) -> None:
    passed = Counter(result.check for result in results if result.passed)
    looked_at = Counter(result.check for result in results)
    for result in results:
        if not result.passed:
            _tell_problem(result)
    counts = ", ".join(f"{check} {passed[check]}/{looked_at[check]}" for check in looked_at)
    tables = plural(len({result.table for result in results} - {results[0].table}), "table")
    say(f"{source.slug}: {tables}; passed: {counts}")


def _tell_problem(result: CheckResult) -> None:
    evidence = result.evidence
    more = evidence["problems"] - len(evidence["first_problems"])
    sign = "✗" if result.severity is Severity.ERROR else "!"
    say(f"{sign} {result.check} of {result.table}", style="bold red" if sign == "✗" else "yellow")
    for problem in evidence["first_problems"]:
        say(f"    {plain(problem)}")
    if more:
        say(f"    … and {more:,} more")
    note(f"    {evidence['what_to_do']}")


def _check_as_dict(result: CheckResult) -> dict[str, Any]:
    return {
        "table": result.table,
        "check": result.check,
        "passed": result.passed,
        "severity": result.severity.value,
        "evidence": result.evidence,
    }
