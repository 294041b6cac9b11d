"""The ways that a source's settings ask for."""

from collections.abc import Mapping

from lake.alerts.channels.channel import Channel
from lake.alerts.channels.email import Email
from lake.alerts.channels.sns import SnsTopic
from lake.alerts.channels.webhook import WebHook
from lake.aws.access import AwsAccess
from lake.settings import Source


def channels(source: Source, environ: Mapping[str, str]) -> dict[str, Channel]:
    """By the names under which the state knows them; secrets are read when they are needed."""
    alerts, found = source.alerts, dict[str, Channel]()
    if alerts.email_to:
        found["email"] = Email(alerts, environ)
    if alerts.sns_topic_arn:
        found["sns"] = SnsTopic(alerts.sns_topic_arn, AwsAccess.of(source))
    if alerts.webhook:
        found["webhook"] = WebHook(alerts.webhook, environ)
    return found
