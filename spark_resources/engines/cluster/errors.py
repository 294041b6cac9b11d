"""Errors of a cluster with their remedy; Spark itself reports Java stack traces."""

import re
import sys

from eventlake.rules.errors import InvalidSetting, LakeError, ServiceTrouble

HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"(?: \(in directory "[^"]*"\))?: ([^\n]*)')
_OTHER_PYTHON = re.compile(r"PYTHON_VERSION_MISMATCH\][^\n]*?version: ?(\d+\.\d+)")
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '([\w.]+)'")


def unusable(problem: str) -> InvalidSetting:
    """The cluster of the settings cannot run jobs; all such errors begin alike."""
    return InvalidSetting(f"Data lake has invalid configuration for `engine`: {problem}")


def trouble(problem: str) -> ServiceTrouble:
    """The cluster failed, although the settings are right."""
    return ServiceTrouble(
        f"Spark did not answer as it should: {problem} What was published stays; the next run "
        "continues from there."
    )


class NoExecutors(ServiceTrouble):
    """The cluster started no executor within the time-out."""


def of_workers(text: str, master: str) -> LakeError | None:
    """The error of workers that is known to cause this error text of Spark, if any."""
    if found := _NO_PROGRAM.search(text):
        return unusable(
            f"the workers of {master} cannot run {found[1]!r} ({found[2].strip()}). Install Python "
            f"{HERE} on each of them, or set `python` under `spark` to where it is."
        )
    if found := _OTHER_PYTHON.search(text):
        return unusable(
            f"the workers of {master} run Python {found[1]}, this is Python {HERE}. Set `python` "
            f"under `spark` to a Python {HERE} of the workers, or run Dagster with {found[1]}."
        )
    if found := _NO_MODULE.search(text):
        return unusable(
            f"a worker of {master} has no Python package {found[1]!r}. A worker that joined later "
            "has other packages than those that were checked: install the same on all, or none."
        )
    return None


def not_shared(folder: str, hosts: str) -> InvalidSetting:
    return InvalidSetting(
        f"Data lake has invalid configuration for `storage`: {hosts} of the cluster cannot see "
        f"what this machine writes to {folder}. Mount the same folder there, under the same path "
        "and for the same user, or set `storage` to s3://bucket[/prefix]."
    )
