"""New columns and tables are told for a day, with the run that brought them."""

from datetime import timedelta

from eventlake.checks.drift import made
from eventlake.runs.verify import Severity
from eventlake.state.manifest import read_manifest
from tests.support.catalogs.by_hand import Checked
from tests.support.lakes.archive import page, track


def test_new_columns_and_tables_are_named_with_their_run(checked: Checked) -> None:
    checked.runs.archive.day("2026-10-03").file(
        "c",
        track("Order", "m6", "2026-10-03T07:00", gift=True, weight=1.25),
        page("m7", "2026-10-03T07:00"),
    )
    checked.runs.sync()
    last = read_manifest(checked.runs.storage, "S1", 3)
    assert last is not None
    at = made(last)
    results = checked.results(at + timedelta(hours=1))

    orders, pages = results["track_order", "schema_change"], results["page", "schema_change"]
    assert not orders.passed and orders.severity is Severity.WARN
    of_second, of_third = orders.evidence["first_problems"]
    assert of_second.startswith("properties_coupon string (run R2, ")
    told = f"(run R3, {at:%Y-%m-%d %H:%M})"
    assert of_third == f"properties_gift boolean, properties_weight decimal(38,6) {told}"
    assert orders.evidence["new_columns"] == 3
    assert pages.evidence["first_problems"] == (f"the table is new, with 16 columns {told}",)
    assert results["identify", "schema_change"].evidence == {
        "problems": 0,
        "columns": 17,
        "new_columns": 0,
    }

    later = checked.results(at + timedelta(hours=25))
    assert all(later[table, "schema_change"].passed for table in ("track_order", "page"))


def test_what_the_first_run_of_a_source_makes_is_no_change(empty: Checked) -> None:
    for day in ("2026-10-01", "2026-10-02", "2026-10-03"):
        name = f"Event {day[-1]}"
        empty.runs.archive.day(day).file("a", track(name, f"m{day}", f"{day}T07:00"))
    empty.runs.sync()
    assert empty.runs.state().manifest == 3
    assert all(result.passed for result in empty.results().values())
