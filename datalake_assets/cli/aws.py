"""`datalake aws`: one-time set-up by the administrator of an account."""

import typer

from datalake_assets.cli.invocation import DryRun, invocation
from datalake_assets.cli.output import note, say
from eventlake.aws.access import AwsAccess
from eventlake.aws.lifecycle import Rule, apply_lifecycle, our_rules, read_lifecycle
from eventlake.rules.errors import UsageError
from eventlake.rules.text import plain, plural

aws = typer.Typer(no_args_is_help=True, help="Set up what the lake needs on AWS (docs/aws.md).")


@aws.callback()
def group() -> None:
    """Makes this a group although it has one command."""


@aws.command()
def lifecycle(
    context: typer.Context,
    dry_run: DryRun = False,
) -> None:
    """Expire staging files, logs, old versions and unfinished uploads; other rules stay.

    For a bucket that existed before the lake: infra/aws/datalake.yaml creates buckets with the
    rules. Uses your own credentials, because the role of the lake may not change the bucket.

    \b
    Examples:
      datalake aws lifecycle --dry-run
      datalake aws lifecycle
    """
    settings = invocation(context).settings()
    scheme, _, place = settings.storage_uri.partition("s3://")
    if scheme or not place:
        raise UsageError(
            f"`storage` is {settings.storage}: only buckets have a lifecycle. Set it to "
            "s3://bucket[/prefix], or leave this out: runs clean up staging themselves."
        )
    bucket, _, folder = place.partition("/")
    access = AwsAccess.of(settings).without_role()
    ours = our_rules(f"{folder}/" if folder else "", settings.retention.stage_days)
    planned = read_lifecycle(access, bucket, ours)
    for rule in planned.changes:
        say(f"{plain(rule['ID'])}: {_in_words(rule)}")
    others = sum(rule not in ours for rule in planned.kept)
    if not planned.changes:
        return say(f"{bucket} has the lake's rules already, {plural(others, 'other rule')} besides")
    if dry_run:
        return note(f"Nothing was changed (--dry-run); {plural(others, 'other rule')} would stay.")
    apply_lifecycle(access, planned)
    say(f"{bucket} has these rules now, {plural(others, 'other rule')} besides")


def _in_words(rule: Rule) -> str:
    """What the rule removes after how many days."""
    after = {
        "files": rule["Expiration"].get("Days"),
        "old versions": rule["NoncurrentVersionExpiration"]["NoncurrentDays"],
        "unfinished uploads": rule.get("AbortIncompleteMultipartUpload", {}).get(
            "DaysAfterInitiation"
        ),
    }
    removed = ", ".join(
        f"{what} after {plural(days, 'day')}" for what, days in after.items() if days
    )
    return f"removes from {plain(rule['Filter']['Prefix'])} {removed}"
