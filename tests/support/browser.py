"""Chromium: how it is started, and pictures of its pages."""

import os

from playwright.sync_api import Page

CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]


def picture(page: Page, name: str, *, whole: bool = False, wait: int = 0) -> None:
    """A picture of a page in the folder $DATALAKE_SCREENSHOTS, if that is set."""
    folder = os.environ.get("DATALAKE_SCREENSHOTS")
    if folder:
        page.wait_for_timeout(wait)  # milliseconds, in which charts of others finish drawing
        page.screenshot(path=f"{folder}/{name}.png", full_page=whole)
