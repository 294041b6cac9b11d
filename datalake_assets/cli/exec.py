"""The program becomes another one: signals reach that, and its exit code is ours."""

import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn


def become(module: Sequence[str], environ: Mapping[str, str]) -> NoReturn:
    """Run a module with its arguments in this very process."""
    # What a script starts in the background ignores Ctrl-C, and Dagster treats SIGTERM like it:
    # nothing but `kill -9` would end it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.execve(sys.executable, [sys.executable, "-m", *module], dict(environ))
