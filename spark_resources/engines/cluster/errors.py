"""What goes wrong with a cluster, in words that say what to do; Spark tells it as Java's errors."""

import re
import sys

from eventlake.rules.errors import InvalidSetting, LakeError, ServiceTrouble

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"(?: \(in directory "[^"]*"\))?: ([^\n]*)')
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH\][^\n]*?version: ?(\d+\.\d+)")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")
_NO_FILE = re.compile(r"FileNotFoundError: [^\n]*'([^'\n]+)'")


def unusable(told: str) -> InvalidSetting:
    """The cluster of the settings cannot do the work; all such errors begin alike."""
    return InvalidSetting(f"Data lake has invalid configuration for `engine`: {told}")


def trouble(told: str) -> ServiceTrouble:
    """The cluster did not do what it could be asked for."""
    return ServiceTrouble(
        f"Spark did not answer as it should: {told} What was published stays; the next run goes on "
        "from there."
    )


class NoExecutors(ServiceTrouble):
    """The cluster gave none for too long."""


def of_workers(said: str, master: str) -> LakeError | None:
    """What a text of Spark's says of the machines that its workers run on, if that is known."""
    if found := _NO_PROGRAM.search(said):
        return unusable(
            f"the workers of {master} cannot run {found[1]!r} ({found[2].strip()}). Install Python "
            f"{HERE} on each of them, or set `python` under `spark` to where it is."
        )
    if found := _OTHER_PYTHON.search(said):
        return unusable(
            f"the workers of {master} run Python {found[1]}, this is Python {HERE}. Set `python` "
            f"under `spark` to a Python {HERE} of the workers, or run Dagster with {found[1]}."
        )
    if found := _NO_MODULE.search(said):
        return unusable(
            f"a worker of {master} has no Python package {found[1]!r}. A worker that joined later "
            "has other packages than those that were looked at: install the same on all, or none."
        )
    return None


def not_shared(folder: str, hosts: str) -> InvalidSetting:
    return InvalidSetting(
        f"Data lake has invalid configuration for `storage`: {hosts} of the cluster cannot see "
        f"what this machine writes to {folder}. Mount the same folder there, under the same path "
        "and for the same user, or set `storage` to s3://bucket[/prefix]."
    )
