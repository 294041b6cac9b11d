"""The process of `datalake console`: serves the pages until it is stopped."""

import logging
import os
import sys

import uvicorn

from datalake_assets.console.app import open_console


def main(host: str, port: int) -> None:
    logging.basicConfig(format="%(message)s", level=logging.INFO, stream=sys.stderr)
    app = open_console(host, os.environ).app()
    uvicorn.run(
        app, host=host, port=port, log_level="warning", server_header=False, proxy_headers=False
    )


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
