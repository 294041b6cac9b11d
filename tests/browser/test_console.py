"""The console over a lake of two weeks, in a real browser: what a person sees and does.

The pictures of docs/console.md are made here: `DATALAKE_SCREENSHOTS=docs/images make test-browser`.
"""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dagster as dg
import pyarrow.parquet as pq
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Download, Page, expect

from datalake_assets.console.access import Access
from datalake_assets.console.app import Console
from datalake_assets.console.replays import Replays
from datalake_assets.instance.home import ensure_home
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
SHORT, LONG = 10_000, 90_000  # milliseconds
WIDE, PHONE = {"width": 1280, "height": 860}, {"width": 390, "height": 844}


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
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """Three sources, of which one fails since yesterday; a sync at the end of each day."""
    folder = tmp_path_factory.mktemp("lake")
    lake = lake_in(folder, WEB_SHOP, IOS_PROD, CRM)
    ensure_home(lake.settings)
    data, first = folder / "data", TODAY - timedelta(days=DAYS)
    data.mkdir()
    spec = SampleSpec(first_day=first.date(), days=DAYS, events_per_day=400, files_per_day=3)
    for source, sample in zip(lake.settings.sources, (WEB_SHOP, IOS_PROD), strict=False):
        for n, _ in enumerate(arrivals(data, spec, sample, DAYS), 1):
            with at(first + timedelta(days=n, minutes=-5)):
                drained(lake.settings, source)
    archive, crm = Archive(data / "segment-logs" / CRM["id"]), lake.settings.sources[2]
    for day in (first, TODAY - timedelta(days=1)):
        lines = [contact(f"c{n}-{day:%d}", day, "Contact Added") for n in range(40)]
        broken = [] if day == first else [f'{{"type": "track", "messageId": "c{n}' for n in range(60)]
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
        options = {"viewport": WIDE, "permissions": ["clipboard-read", "clipboard-write"]} | looks
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
    "phone": {"runOnly": ["link-name", "label", "scrollable-region-focusable", "aria-hidden-focus"]},
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
        picture(page, f"console-{name}-{look}", whole=True)
