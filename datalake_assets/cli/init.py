"""`datalake init`: a commented `lake.yaml` to start from."""

from pathlib import Path
from typing import Annotated

import typer

from datalake_assets.cli.invocation import invocation
from datalake_assets.cli.output import say
from eventlake.rules.errors import UsageError
from eventlake.settings.file import DEFAULT_FILE, template


def init(
    context: typer.Context,
    force: Annotated[bool, typer.Option(help="Overwrite an existing file.")] = False,
) -> None:
    """Write a commented lake.yaml to start from.

    \b
    Examples:
      datalake init
      datalake init --config shop/lake.yaml
    """
    file = invocation(context).file()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("w" if force else "x", encoding="utf-8") as out:
            out.write(template())
    except FileExistsError:
        raise UsageError(
            f"{file} exists already and was not changed. To replace it, add --force; to write "
            "another file, name it with --config."
        ) from None
    except OSError as error:
        raise UsageError(f"{file} cannot be written: {error.strerror}.") from error
    named = "" if file == Path.cwd() / DEFAULT_FILE else f" --config {file}"
    say(f"Wrote {file}")
    say(
        "Next:\n"
        "  1. Name your sources in it: the id as in the archive, and a short slug.\n"
        "  2. Put their archives below `storage`: segment-logs/<id>/<day in epoch ms>/*.gz\n"
        f"  3. datalake{named} check\n"
        f"  4. datalake{named} sync"
    )
