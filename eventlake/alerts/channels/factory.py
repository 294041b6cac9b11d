"""The ways that a source's settings ask for."""

from collections.abc import Mapping

from eventlake.alerts.channels.base import Channel
from eventlake.alerts.channels.email import Email
from eventlake.alerts.channels.sns import SnsTopic
from eventlake.alerts.channels.webhook import WebHook
from eventlake.aws.access import AwsAccess
from eventlake.settings.models import Source


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
