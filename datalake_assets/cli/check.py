"""`datalake check`: whether a run would work, told before it is tried."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from datalake_assets.cli.invocation import invocation
from datalake_assets.cli.output import out, print_json
from datalake_assets.cli.text import plural

if TYPE_CHECKING:
    from datalake_assets.preflight import Finding
    from lake.lake import Lake


def check(
    context: typer.Context,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Try settings, access and Java, and say what to mend.

    Changes nothing, but for the empty table of sync reports that it makes when all is well.

    \b
    Examples:
      datalake check
      datalake --config shop/lake.yaml check --json
    """
    asked = invocation(context)
    found = look(asked.file(), asked.lake())
    if as_json:
        print_json([_as_dict(finding) for finding in found])
    else:
        show_findings(found)
    raise typer.Exit(max((f.error.exit_code for f in found if f.error), default=0))


def look(file: Path, lake: "Lake") -> "list[Finding]":
    """Every finding; where nothing is wrong, asking for reports is no error from now on."""
    from datalake_assets.preflight import Finding, findings
    from lake.catalog.sync_reports import ensure_reports_table

    sources = lake.settings.sources
    read = Finding("settings", f"{file}, {plural(len(sources), 'source')}")
    found = [read, *findings(lake, sources)]
    if not any(finding.error for finding in found):
        ensure_reports_table(lake.catalog)
    return found


def show_findings(found: "list[Finding]") -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2, 0, 0))
    for finding in found:
        sign, style = ("✗", "bold red") if finding.error else ("✓", "green")
        if finding.warning:
            sign, style = "!", "yellow"
        seen = str(finding.error or finding.seen)
        table.add_row(Text(sign, style), Text(finding.what, "bold", no_wrap=True), Text(seen))
    out().print(table)


def _as_dict(finding: "Finding") -> dict[str, str]:
    level = "error" if finding.error else "warning" if finding.warning else "ok"
    return {"what": finding.what, "level": level, "seen": str(finding.error or finding.seen)}
