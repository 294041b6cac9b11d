"""`datalake check`: whether a run would work, before it starts."""

from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from datalake_assets.cli.invocation import AsJson, chosen_sources, invocation
from datalake_assets.cli.output import note, out, print_json, say, working
from datalake_assets.instance.schedules import schedules_of
from datalake_assets.preflight import Finding, findings
from eventlake.catalog.sync_records import ensure_own_tables
from eventlake.checks.published import source_checks
from eventlake.lake import Lake
from eventlake.rules.errors import LakeError
from eventlake.rules.text import plain, plain_lines, plural
from eventlake.runs.context import now
from eventlake.runs.verify import CheckResult, Severity
from eventlake.settings.models import Source


def check(
    context: typer.Context,
    tables: Annotated[
        bool, typer.Option("--tables", help="Check published tables instead of settings.")
    ] = False,
    source: Annotated[
        str | None, typer.Option(help="With --tables: slug or id. Default: all.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check settings, access and engine; say what to fix and why data may be missing.

    Leaves nothing behind but the empty table of sync reports. On AWS it writes small files to the
    bucket and removes them, and tests permissions on Glue and EMR without changing anything. With
    --tables it compares catalog, files and schemas with what was published and changes nothing.
    Exit code 1: data is wrong.

    \b
    Examples:
      datalake check
      datalake check --tables --source ios_prod
      datalake --config shop/lake.yaml check --json
    """
    invoked = invocation(context)
    if tables:
        raise typer.Exit(check_tables(invoked.lake(), source, as_json))
    if source is not None:
        raise typer.BadParameter("goes with --tables only", param_hint="--source")
    found = run_check(invoked.file(), invoked.lake())
    if as_json:
        print_json([_as_dict(finding) for finding in found])
    else:
        show_findings(found)
    raise typer.Exit(max((_exit_code(f.error) for f in found if f.error), default=0))


def _exit_code(error: LakeError) -> int:
    """A wrong setting is wrong use of the command, although a run would report it as a failure."""
    return 2 if error.error_code == "Segment.InvalidSettings" else error.exit_code


def run_check(file: Path, lake: Lake) -> list[Finding]:
    """All findings; without errors, the table of sync reports is created for queries."""
    sources = lake.settings.sources
    read = Finding("settings", f"{file}, {plural(len(sources), 'source')}")
    found = [read, *findings(lake, sources, schedules_of(lake))]
    if not any(finding.error for finding in found):
        ensure_own_tables(lake.catalog)
    return found


def show_findings(found: list[Finding]) -> None:
    styles = {"error": "bold red", "warning": "yellow", "ok": "green"}
    table = Table.grid(padding=(0, 2, 0, 0))
    for one in found:
        sign = Text(one.sign, styles[one.level])
        table.add_row(sign, Text(one.what, "bold", no_wrap=True), Text(plain_lines(one.message)))
    out().print(table)


def _as_dict(finding: Finding) -> dict[str, str]:
    return {"what": finding.what, "level": finding.level, "seen": finding.message}


def check_tables(lake: Lake, slug: str | None, as_json: bool) -> int:
    """Show the results; returns the exit code, 1 if data is wrong."""
    sources = chosen_sources(lake, slug)
    results: list[CheckResult] = []
    for source in sources:
        with working(f"checking {source.slug}"):
            found = list(source_checks(lake, source, now()))
        results += found
        if not as_json:
            _show_results(source, found)
    if as_json:
        print_json([_check_as_dict(result) for result in results])
    return int(any(not r.passed and r.severity is Severity.ERROR for r in results))


def _show_results(source: Source, results: list[CheckResult]) -> None:
    passed = Counter(result.check for result in results if result.passed)
    checked = Counter(result.check for result in results)
    for result in results:
        if not result.passed:
            _show_problem(result)
    counts = ", ".join(f"{check} {passed[check]}/{checked[check]}" for check in checked)
    tables = plural(len({result.table for result in results} - {results[0].table}), "table")
    say(f"{source.slug}: {tables}; passed: {counts}")


def _show_problem(result: CheckResult) -> None:
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
