"""`datalake check --tables`: what is published, held against what the manifests say."""

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from datalake_assets.cli.output import note, print_json, say, working
from datalake_assets.cli.text import plain, plural
from eventlake.runs.context import now
from eventlake.runs.verify import CheckResult, Severity

if TYPE_CHECKING:
    from eventlake.lake import Lake
    from eventlake.settings.models import Source


def check_tables(lake: "Lake", slug: str | None, as_json: bool) -> int:
    """Show the verdicts; the exit code is 1 if data is wrong."""
    sources = lake.settings.sources if slug is None else (lake.settings.source(slug),)
    results: list[CheckResult] = []
    for source in sources:
        with working(f"checking {source.slug}"):
            found = list(_results(lake, source))
        results += found
        if not as_json:
            _tell(source, found)
    if as_json:
        print_json([_as_dict(result) for result in results])
    return int(any(not r.passed and r.severity is Severity.ERROR for r in results))


def _results(lake: "Lake", source: "Source") -> Iterator[CheckResult]:
    from eventlake.checks.freshness import check_freshness
    from eventlake.checks.published import TableChecks

    yield check_freshness(lake, source, now())
    yield from TableChecks(lake, source, now()).run()


def _tell(source: "Source", results: list[CheckResult]) -> None:
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


def _as_dict(result: CheckResult) -> dict[str, Any]:
    return {
        "table": result.table,
        "check": result.check,
        "passed": result.passed,
        "severity": result.severity.value,
        "evidence": result.evidence,
    }
