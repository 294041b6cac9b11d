"""Whether runs can work, found out before they are tried, and without changes that last."""

from datalake_assets.preflight.finding import Finding
from datalake_assets.preflight.looking import before_run, findings, require

__all__ = ["Finding", "before_run", "findings", "require"]
