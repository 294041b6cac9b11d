"""Dagster's webserver, guarded against other web sites: a page in your browser may call it.

Dagster checks neither the host that a browser asked for (a foreign name may lead to 127.0.0.1) nor
the site that a request comes from, and it runs mutations by GET.
"""

import logging
import os
import sys
from collections.abc import Mapping
from typing import Any

from dagster_webserver.webserver import DagsterWebserver
from starlette.middleware import Middleware
from starlette.routing import BaseRoute, Mount

from datalake_assets.console.app import open_console
from datalake_assets.guard import Guard, own_names
from datalake_assets.instance.dagster_private import run_dev, run_webserver
from datalake_assets.instance.links import CONSOLE_VARIABLE
from datalake_assets.sensors.reload import WEBSERVER_VARIABLE
from eventlake.rules.errors import LakeError


def names() -> frozenset[str]:
    """The names by which the UI may be asked for."""
    # For the other processes of `datalake dev`.
    return own_names(os.environ.get(WEBSERVER_VARIABLE, "").rpartition(":")[0])


class GuardedWebserver(DagsterWebserver[Any, Any]):
    def build_routes(self) -> list[Any]:
        theirs: Any = super()
        return [*console_routes(os.environ), *theirs.build_routes()]

    def build_middleware(self) -> list[Middleware]:
        return [Middleware(Guard, names=names()), *super().build_middleware()]


def console_routes(environ: Mapping[str, str]) -> list[BaseRoute]:
    """The console below /console, unless everybody could open it."""
    host = environ.get(CONSOLE_VARIABLE)
    if host is None:
        return []
    try:
        return [Mount("/console", open_console(host, environ, dagster="").app())]
    except LakeError as error:
        logging.getLogger("datalake.console").warning("No console at /console: %s", error)
        return []


def main() -> None:
    """`dagster-webserver`, or `dagster dev` if that is the first argument, with the guard."""
    if sys.argv[1:2] == ["dev"]:
        run_dev(__spec__.name)
    else:
        run_webserver(GuardedWebserver)


if __name__ == "__main__":
    main()
