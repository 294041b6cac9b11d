import subprocess
import sys

_IN_THE_BACKGROUND = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell does for what a script starts with `&`
from datalake_assets.cli.exec import become
told = "import signal; print(signal.getsignal(signal.SIGINT))"
become(["timeit", "-n1", "-r1", told], os.environ)
"""


def test_what_a_script_starts_in_the_background_can_be_ended() -> None:
    """Dagster has SIGTERM do what Ctrl-C does: that must not be nothing."""
    told = subprocess.run(
        [sys.executable, "-c", _IN_THE_BACKGROUND], capture_output=True, text=True, check=True
    )
    assert "default_int_handler" in told.stdout
