"""The Dagster UI over a small lake, in a real browser: what a person sees.

With $DATALAKE_SCREENSHOTS set to a folder, every page looked at is kept there as a picture.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from datalake_assets.component import build
from datalake_assets.instance.home import ensure_home
from datalake_assets.instance.snapshot import read_snapshot
from datalake_assets.launch import execute
from eventlake.checks.view import TABLE_RULES
from eventlake.lake import Lake
from eventlake.runs.verify import CHECKS
from eventlake.sample import WEB_SHOP, SampleSpec, write_archive
from eventlake.settings.file import load_settings
from tests.support.browser import picture
from tests.support.lakes.platform import InProcessEngine
from tests.support.lakes.settings import lake_in
from tests.support.repo import page_at, reserved_port

pytestmark = pytest.mark.browser
SECONDS_TO_START = 120
_UNSET = ("DAGSTER_HOME", "DATALAKE_CONFIG")
SECONDS_TO_SHOW = 60_000  # milliseconds, as Playwright counts
CHARTS = 2_000  # milliseconds until they are drawn


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A lake into which two days were synced, under Dagster."""
    folder = tmp_path_factory.mktemp("project")
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DAGSTER_HOME", raising=False)
        lake = lake_in(folder, WEB_SHOP)
        ensure_home(lake.settings)
        source = lake.settings.sources[0]
        sample = SampleSpec(days=2, events_per_day=300, files_per_day=2, hours=4)
        for arrived in (1, 2):
            write_archive(Path(lake.settings.storage_uri), sample, arrived=arrived)
            definitions = build(lake, read_snapshot(lake), InProcessEngine())
            job = definitions.resolve_job_def(f"sync_{source.name}")
            assert execute(job, source, {}).succeeded
        yield folder


@pytest.fixture(scope="module")
def address(project: Path) -> Iterator[str]:
    """The UI as `datalake dev` starts it."""
    with reserved_port() as port:
        process = subprocess.Popen(
            [sys.executable, "-m", "datalake_assets.cli", "dev", "--port", str(port)],
            cwd=project,
            env={k: v for k, v in os.environ.items() if k not in _UNSET},
        )
        try:
            page_at(f"http://127.0.0.1:{port}/server_info", SECONDS_TO_START)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(60)


Look = Callable[[str], Page]


@pytest.fixture(scope="module")
def look(address: str, browser: Browser) -> Iterator[Look]:
    """Go to a page of the UI."""
    page = browser.new_page(viewport={"width": 1500, "height": 950})
    page.set_default_timeout(SECONDS_TO_SHOW)
    expect.set_options(timeout=SECONDS_TO_SHOW)

    def go(path: str) -> Page:
        page.goto(address + path)
        return page

    yield go
    page.close()


def test_the_graph_leads_from_the_archive_to_tables_that_passed_the_checks_of_their_sync(
    look: Look,
) -> None:
    page = look("/locations/datalake/asset-groups/web_shop")
    expect(page.get_by_text("track_order_completed").first).to_be_visible()
    passed = f"{len(CHECKS | TABLE_RULES)} / {len(CHECKS | TABLE_RULES)} Passed"
    expect(page.get_by_text(passed).first).to_be_visible()
    picture(page, "graph", wait=CHARTS)


def test_a_table_shows_its_rows_its_columns_and_plots(look: Look) -> None:
    page = look("/assets/web_shop/track_order_completed")
    expect(page.get_by_text("event of web_shop, one row each.")).to_be_visible()
    expect(page.get_by_text("Row count")).to_be_visible()
    expect(page.get_by_text("/messageId")).to_be_visible()
    picture(page, "table", wait=CHARTS)
    page.get_by_placeholder("Filter columns").fill("properties_total")
    expect(page.get_by_text("/properties/total", exact=True)).to_be_visible()
    expect(page.get_by_text("decimal(38,6)").first).to_be_visible()
    page.get_by_role("button", name="Plots").click()
    expect(page.get_by_text("dagster/partition_row_count")).to_be_visible()
    page.get_by_text("dagster/partition_row_count").scroll_into_view_if_needed()
    picture(page, "plots", wait=CHARTS)


def test_a_check_shows_its_rule_and_its_numbers(look: Look) -> None:
    page = look("/assets/web_shop/track_order_completed?view=checks")
    for name in CHECKS:
        expect(page.get_by_text(name, exact=True).first).to_be_visible()
    expect(page.get_by_text(CHECKS["conservation"].split(",")[0]).first).to_be_visible()
    expect(page.get_by_text("rows_in").first).to_be_visible()
    picture(page, "checks", wait=CHARTS)


def test_a_sync_launched_in_the_ui_runs_and_reports(look: Look, project: Path) -> None:
    page = look("/locations/datalake/jobs/sync_web_shop/playground")
    page.get_by_role("button", name="Launch Run").click()
    expect(page.get_by_text("Nothing new in the archive.").first).to_be_visible()
    picture(page, "run", wait=CHARTS)

    lake = Lake.open(load_settings(project / "lake.yaml", {}, project))
    reports = [f for f in lake.storage.files("segment-data/reports") if f.name == "report.json"]
    assert len(reports) == 3


def test_the_replays_days_are_offered_from_the_first_day_of_the_source(look: Look) -> None:
    page = look("/assets/web_shop/page?view=partitions")
    expect(page.get_by_text("2026-10-01").first).to_be_visible()
    expect(page.get_by_text("Materialized (2)")).to_be_visible()
    picture(page, "partitions", wait=CHARTS)


def test_a_catalog_entry_has_a_page(look: Look) -> None:
    page = look("/assets/web_shop/page_schema")
    expect(page.get_by_text("The catalog entry of web_shop.page")).to_be_visible()
