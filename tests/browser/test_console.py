"""The console over a lake of two weeks, in a real browser: what a person sees and does.

The pictures of docs/console.md are made here: `DATALAKE_SCREENSHOTS=docs/images make test-browser`.
"""

import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Download, Page, ViewportSize, expect

from datalake_assets.console.access import Access
from datalake_assets.console.app import Console
from datalake_assets.console.replays import Replays
from datalake_assets.instance.home import ensure_home, home_of, opened_instance
from eventlake.api import EventLake
from eventlake.lake import Lake
from eventlake.load.stage_job import StageJob
from eventlake.rules import clock
from eventlake.rules.errors import LakeError
from eventlake.sample import IOS_PROD, WEB_SHOP, SampleSpec
from tests.support.browser import picture
from tests.support.lakes.archive import Archive, arrivals
from tests.support.lakes.in_process import InProcess
from tests.support.lakes.jobs import drained
from tests.support.lakes.settings import lake_in
from tests.support.servers.console import Client, serving

pytestmark = pytest.mark.browser
DAYS = 15
TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
CRM = {"id": "crmEurope03", "slug": "crm", "fail_above_rejected_percent": 50}
NASTY = "<img src=x onerror=alert(1)> \"quotes' & \U0001f600"
SHORT, LONG = 15_000, 120_000  # milliseconds
WIDE: ViewportSize = {"width": 1280, "height": 860}
PHONE: ViewportSize = {"width": 390, "height": 844}


def contact(id: str, day: datetime, name: str) -> dict[str, Any]:
    received = f"{day:%Y-%m-%d}T00:00:00Z"
    return {"type": "track", "messageId": id, "event": name, "receivedAt": received, "userId": "u7"}


@contextmanager
def at(moment: datetime) -> Iterator[None]:
    """The clock of the lake shows a time in the past."""
    started = datetime.now(UTC)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(clock, "read", lambda: moment + (datetime.now(UTC) - started))
        yield


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    """Three sources, of which one fails since yesterday; a sync at the end of each day."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("DAGSTER_HOME", raising=False)
        yield _synced(tmp_path_factory.mktemp("lake"))


def _synced(folder: Path) -> Lake:
    lake = lake_in(folder, WEB_SHOP, IOS_PROD, CRM)
    ensure_home(lake.settings)
    data, first = folder / "data", TODAY - timedelta(days=DAYS)
    data.mkdir()
    spec = SampleSpec(first_day=first.date(), days=DAYS, events_per_day=400, files_per_day=3)
    for source, sample in zip(lake.settings.sources, (WEB_SHOP, IOS_PROD), strict=False):
        for n, _ in enumerate(arrivals(data, spec, sample, DAYS), 1):
            with at(first + timedelta(days=n, minutes=-5)):
                drained(lake.settings, source)
    crm = lake.settings.sources[2]
    archive = Archive(data / "segment-logs" / crm.id)
    for day in (first, TODAY - timedelta(days=1)):
        lines = [contact(f"c{n}-{day:%d}", day, "Contact Added") for n in range(40)]
        broken = (
            [] if day == first else [f'{{"type": "track", "messageId": "c{n}' for n in range(60)]
        )
        archive.day(str(day.date())).file("a", *lines, contact("odd", day, NASTY), *broken)
        for hours in (23, 21):
            with at(day + timedelta(days=1, hours=-hours)), suppress(LakeError):
                drained(lake.settings, crm)
    return lake


@pytest.fixture(scope="module")
def client(lake: Lake) -> Iterator[Client]:
    folder = Path(lake.settings.storage_uri).parent
    replays = Replays(folder / "lake.yaml")
    console = Console(EventLake(lake), Access(), dagster="", replays=replays)
    with serving(console) as client:
        yield client


Open = Callable[..., Page]


@pytest.fixture
def open_page(browser: Browser, client: Client) -> Iterator[Open]:
    """Opens pages; afterwards nothing was logged and nothing went to another host."""
    pages: list[Page] = []
    said: list[str] = []
    asked: list[str] = []

    def open_page(path: str, **looks: Any) -> Page:
        options = {
            "viewport": WIDE,
            "reduced_motion": "reduce",
            "permissions": ["clipboard-read", "clipboard-write"],
        } | looks
        page = browser.new_page(**options)
        pages.append(page)
        page.set_default_timeout(SHORT)
        if path != PAGES["error"]:  # Chromium logs its status
            page.on("console", lambda one: said.append(f"{page.url}: {one.text}"))
        page.on("pageerror", lambda one: said.append(f"{page.url}: {one}"))
        page.on("request", lambda one: asked.append(one.url))
        page.goto(client.address + path)
        return page

    expect.set_options(timeout=SHORT)
    yield open_page
    for page in pages:
        page.close()
    assert said == []
    assert [url for url in asked if not url.startswith((client.address, "data:", "blob:"))] == []


def newest(client: Client, source: str = "web_shop", status: str = "finished") -> str:
    runs = client.get(f"/history.json?source={source}&status={status}").json["runs"]
    return str(next(one for one in runs if one["rows"] or status == "failed")["run_id"])


PAGES = {
    "overview": "/",
    "history": "/history",
    "run": "/history/{run}",
    "failed": "/history/{failed}",
    "health": "/health?source=web_shop",
    "tables": "/tables",
    "table": "/tables/web_shop/track_order_completed",
    "column": "/tables/web_shop/track_order_completed/properties_total",
    "logs": "/records",
    "records": "/records/{run}",
    "rejected": "/records/{run}?status=rejected",
    "find": "/find",
    "story": "/find?q={id}",
    "replay": "/replay",
    "sql": "/sql",
    "error": "/tables/web_shop/nothing",
}
TOO_WIDE = """() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return [];
  return [...document.querySelectorAll("main *")]
    .filter((one) => one.getBoundingClientRect().right > width && !one.closest(".scroll > *"))
    .map((one) => one.outerHTML.slice(0, 200));
}"""
# Every rule once; then those that depend on colours and on the width.
AXE: dict[str, dict[str, Any]] = {
    "light": {"resultTypes": ["violations"]},
    "dark": {"runOnly": ["color-contrast", "link-in-text-block"]},
    "phone": {
        "runOnly": ["link-name", "label", "scrollable-region-focusable", "aria-hidden-focus"]
    },
}


@pytest.fixture(scope="module")
def filled(client: Client) -> dict[str, str]:
    """What the addresses of pages need: a run, a failed one, an event that came twice."""
    run = newest(client)
    (twice, *_) = client.get(f"/records/{run}.json?status=DUPLICATE").json["records"]
    return {"run": run, "failed": newest(client, "crm", "failed"), "id": twice["identifier"]}


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_readable_at_any_width_in_light_and_dark_and_accessible(
    name: str, open_page: Open, filled: dict[str, str]
) -> None:
    page = open_page(PAGES[name].format(**filled))
    for look in ("light", "dark", "phone"):
        page.emulate_media(color_scheme="dark" if look == "dark" else "light")
        if look == "phone":
            page.set_viewport_size(PHONE)
            page.reload()
        expect(page.locator("h1")).to_be_visible()
        assert page.evaluate(TOO_WIDE) == [], look
        found = Axe().run(page, options=AXE[look]).response["violations"]
        serious = [
            (one["id"], one["nodes"][0]["html"], one["nodes"][0]["failureSummary"])
            for one in found
            if one["impact"] in ("serious", "critical")
        ]
        assert serious == [], look
        picture(page, f"console-{name}" + ("" if look == "light" else f"-{look}"))


def test_filters_of_the_history_are_in_the_address(open_page: Open) -> None:
    page = open_page("/history")
    rows = page.locator("tbody tr")
    everything = rows.count()
    page.get_by_label("Status").select_option("failed")
    page.wait_for_url("**status=failed**")
    assert 0 < rows.count() < everything
    expect(rows.first).to_contain_text("rows were rejected")
    page.get_by_label("Source").select_option("web_shop")
    expect(page.get_by_text("No such run in the last 30 days.")).to_be_visible()
    page.get_by_role("link", name="90 days").click()
    assert "source=web_shop" in page.url and "days=90" in page.url


def test_records_are_paged_searched_and_downloaded(
    open_page: Open, filled: dict[str, str], tmp_path: Path
) -> None:
    page = open_page(f"/records/{filled['run']}?status=succeeded")
    rows = page.locator("tbody tr")
    first = rows.first.inner_text()
    assert rows.count() == 50
    page.get_by_role("link", name="Next page").click()
    page.wait_for_url("**after=**")
    assert rows.first.inner_text() != first
    assert_parquet(download_of(page, "Everything found, Parquet"), {"succeeded"}, tmp_path)

    page.get_by_label("Status").select_option("")
    page.wait_for_url(lambda url: "status=succeeded" not in url)
    page.get_by_label("Message id", exact=True).fill(filled["id"])
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("received within 7 days of this one")).to_be_visible()
    page.get_by_label("Message id", exact=True).fill("")
    page.get_by_label("Text in reason or payload").fill("not JSON")
    page.get_by_role("button", name="Search").click()
    expect(rows.first).to_contain_text("The line is not JSON")
    rows.first.get_by_text("Raw line").first.click()
    expect(rows.first.locator("pre")).to_be_visible()


def download_of(page: Page, link: str) -> Download:
    page.get_by_text("Download", exact=True).click()
    with page.expect_download() as found:
        page.get_by_role("link", name=link).click()
    return found.value


def assert_parquet(download: Download, statuses: set[str], folder: Path) -> None:
    download.save_as(folder / download.suggested_filename)
    rows = pq.read_table(folder / download.suggested_filename)
    assert rows.num_rows > 50
    assert set(rows["status"].to_pylist()) == statuses


def test_keys_alone_lead_to_an_event_and_run_sql(open_page: Open, filled: dict[str, str]) -> None:
    page = open_page("/")
    page.keyboard.press("Tab")
    expect(page.get_by_text("Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("/")
    expect(page.get_by_label("Find an event by its message id")).to_be_focused()
    page.keyboard.type(filled["id"])
    page.keyboard.press("Enter")
    expect(page.get_by_text("What happened")).to_be_visible()
    page.get_by_role("link", name="SQL").press("Enter")
    expect(page.get_by_label("SQL statement")).to_be_focused()
    page.keyboard.press("Control+a")
    page.keyboard.type("SELECT count(*) AS pages FROM web_shop.page")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("columnheader", name="pages")).to_be_visible()
    with page.expect_download() as found:
        page.get_by_role("button", name="CSV").press("Enter")
    assert found.value.path().read_text().splitlines()[0] == '"pages"'
    page.get_by_label("SQL statement").fill("SELEC 1")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("syntax error").first).to_be_visible()


def test_a_table_has_values_on_hover_a_filter_and_queries_to_copy(open_page: Open) -> None:
    page = open_page(PAGES["table"])
    page.locator(".chart .bar").nth(3).hover()
    expect(page.locator("#tip")).to_have_text(re.compile(r"\d{4}-\d\d-\d\d: \d+ rows"))
    page.locator(".heat .bar").first.hover()
    expect(page.locator("#tip")).to_have_text(re.compile(r"\d\d:00: \d+ rows?, 1 file, "))
    rows = page.locator("#passports tbody tr")
    page.get_by_label("Filter columns").fill("loyalty")
    expect(rows.locator("visible=true")).to_have_count(3)
    page.locator(".copy", has_text="Athena").get_by_role("button", name="Copy").click()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith('SELECT *\nFROM "web_shop"."track_order_completed"')


def test_names_full_of_html_are_shown_as_text(open_page: Open) -> None:
    page = open_page("/tables?database=crm")
    expect(page.get_by_text(NASTY)).to_be_visible()
    page.get_by_role("row", name=NASTY).get_by_role("link").click()
    expect(page.get_by_text(NASTY).first).to_be_visible()
    assert page.locator("img").count() == 0


def test_a_sync_is_followed_to_its_end(open_page: Open, lake: Lake) -> None:
    """It waits within its first task until the page shows it."""
    source, goes_on, ended = lake.settings.sources[1], threading.Event(), []

    class Waiting(InProcess):
        def stage(self, job: StageJob, tasks: Any) -> Any:
            assert goes_on.wait(60)
            return super().stage(job, tasks)

    folder = Path(lake.settings.storage_uri) / "segment-logs" / source.id
    event = contact("late", TODAY, "Late")
    Archive(folder).day(str(TODAY.date())).file("late", event)
    sync = threading.Thread(target=lambda: ended.append(drained(lake.settings, source, Waiting)))
    sync.start()
    try:
        page = open_page("/history?source=ios_prod")
        page.reload()
        card = page.locator(".running")
        expect(card).to_contain_text("Sync of ios_prod", timeout=LONG)
        expect(card.get_by_role("progressbar")).to_be_visible()
        card.locator("a.mono").click()
        expect(page.get_by_text("This page follows it.")).to_be_visible()
        picture(page, "console-running")
    finally:
        goes_on.set()
        sync.join(60)
    assert ended
    expect(page.get_by_role("link", name="ios_prod.track_late")).to_be_visible()


def test_a_replay_starts_in_dagster_and_is_watched_to_its_end(open_page: Open, lake: Lake) -> None:
    day = TODAY - timedelta(days=4)
    page = open_page("/replay?source=web_shop&table=page")
    page.get_by_label("From (UTC)").fill(f"{day:%Y-%m-%d}")
    page.get_by_label("To, exclusive (UTC)").fill(f"{day + timedelta(days=1):%Y-%m-%d}")
    page.on("dialog", lambda one: one.accept())
    page.get_by_role("button", name="Replay now").click()
    job = page.locator("h2", has_text="Replay")
    expect(job).to_contain_text("Running")
    expect(page.locator(".running")).to_contain_text("Replay of web_shop", timeout=LONG)
    picture(page, "console-replaying")
    expect(job).to_contain_text("Finished", timeout=LONG)
    page.get_by_role("link", name="What it did").click()
    expect(page.get_by_text(f"replayed {day:%Y-%m-%d}")).to_be_visible()
    link = page.get_by_role("link", name="Open in Dagster").get_attribute("href") or ""
    with opened_instance(home_of(lake.settings)) as instance:
        run = instance.get_run_by_id(link.rpartition("/")[2])
        assert run is not None and run.is_success
