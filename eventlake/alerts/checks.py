"""Checks that fail: one message for each check, naming the tables; one more for more tables."""

from collections.abc import Mapping

from msgspec.structs import replace

from eventlake.alerts.attempt import CheckRun, Verdict
from eventlake.alerts.state import Ended, FailedCheck
from eventlake.settings.models.alerts import Alerts

SILENCE = "freshness"
"""The check of a source that says the same as `no_data_hours`, by another measure."""


def checks_after(
    known: Mapping[str, FailedCheck], run: CheckRun, alerts: Alerts
) -> dict[str, FailedCheck]:
    """The checks that fail after a run, and those that have just come to pass."""
    checks = dict(known)
    here = Ended(run.ended, dagster_run_id=run.dagster_run_id)
    for verdict in run.verdicts:
        wanted = _is_wanted(verdict, alerts)
        before = checks.get(verdict.check)
        if before is not None and before.run.at > run.ended:
            continue  # heard of late: a run after it has judged
        if verdict.passed or not wanted:
            if before is not None:
                failing = {t: e for t, e in before.failing.items() if t != verdict.table}
                checks[verdict.check] = _with(before, here, failing)
        else:
            before = before or FailedCheck(
                run.ended, here, warning=verdict.warning, remedy=verdict.remedy
            )
            failing = {**before.failing, verdict.table: verdict.evidence}
            checks[verdict.check] = _with(before, here, failing)
    return {name: check for name, check in checks.items() if check.failing or check.told}


def _is_wanted(verdict: Verdict, alerts: Alerts) -> bool:
    if verdict.check == SILENCE and alerts.no_data_hours is not None:
        return False  # it is told already that no rows come
    return alerts.check_warnings if verdict.warning else alerts.failed_checks


def _with(check: FailedCheck, run: Ended, failing: dict[str, str]) -> FailedCheck:
    since = check.since if check.failing or not failing else run.at
    told = check.told if not failing else tuple(t for t in check.told if t in failing)
    return replace(check, since=since, run=run, failing=failing, told=told)


def says_nothing(known: Mapping[str, FailedCheck], run: CheckRun) -> bool:
    """As nearly every run: all is well, as it was."""
    return not known and all(verdict.passed for verdict in run.verdicts)


def is_news(check: FailedCheck) -> bool:
    """Tables that were not told, or none that fails any more."""
    return bool(check.failing.keys() - set(check.told)) or (not check.failing and bool(check.told))
