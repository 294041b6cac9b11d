"""Spark needs Java 17 or newer."""

import os
import re
import shutil
import subprocess

from eventlake.rules.errors import UsageError

NEEDED = 17
_REMEDY = (
    f"Spark needs Java {NEEDED} or newer. Install it (`apt-get install openjdk-17-jre-headless`, "
    "`brew install openjdk@17`, or run `make setup`, which does), or set JAVA_HOME to one you have."
)


def require_java() -> int:
    """The version of the Java that Spark would use; raises with the remedy if there is none."""
    home = os.environ.get("JAVA_HOME")
    program = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if program is None or not os.access(program, os.X_OK):
        where = f"JAVA_HOME is {home}, but {program} is no program" if home else "it is not on PATH"
        raise UsageError(f"Java was not found: {where}. {_REMEDY}")
    told = subprocess.run([program, "-version"], capture_output=True, text=True, check=False)
    version = java_version(told.stderr + told.stdout)
    if version is None or version < NEEDED:
        raise UsageError(f"{program} is Java {version or 'of an unknown version'}. {_REMEDY}")
    return version


def java_version(told: str) -> int | None:
    """The major version in what `java -version` prints: 17.0.15 is 17, 1.8.0 is 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', told)
    return int(match[1]) if match else None
