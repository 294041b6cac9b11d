"""Links from Dagster, and from alerts, to the pages of the console."""

import os

from eventlake.settings.models import Source

CONSOLE_VARIABLE = "DATALAKE_CONSOLE_HOST"
"""Where Dagster's webserver listens, if it shows the console below /console."""
LOCAL = ("127.0.0.1", "::1", "localhost")


def console_url(source: Source, ui: str = "") -> str | None:
    """Where the console is: as set, or below the UI that `datalake dev` started; None: nowhere.

    Other addresses of the UI have a console only if it has a token or a proxy, so its URL is a
    setting there.
    """
    if source.alerts.console_url:
        return source.alerts.console_url
    return f"{ui}/console" if os.environ.get(CONSOLE_VARIABLE) in LOCAL else None
