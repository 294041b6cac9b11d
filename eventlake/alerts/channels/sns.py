"""Amazon SNS topics."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from eventlake.alerts.channels import TIMEOUT, NotSent
from eventlake.alerts.state import Message
from eventlake.aws.access import AwsAccess
from eventlake.aws.answers import answer_of
from eventlake.aws.refusals import aws_call
from eventlake.clouds import as_lake_error

_SUBJECT = 100  # characters, and ASCII only
_TEXT = 200_000  # bytes; SNS takes 256 kB with all attributes


@dataclass(frozen=True)
class SnsTopic:
    """Publishes to a topic, in the region of its ARN and with the role of the settings."""

    arn: str
    access: AwsAccess

    @property
    def address(self) -> str:
        return self.arn

    def send(self, message: Message) -> str:
        subject = f"[datalake] {message.title}".encode("ascii", "replace").decode()
        printable = "".join(c if c.isprintable() else " " for c in subject)
        self._call(
            "publish",
            Subject=printable[:_SUBJECT],
            Message=message.text.encode()[:_TEXT].decode(errors="ignore"),
            MessageAttributes={
                name: {"DataType": "String", "StringValue": value}
                for name, value in (
                    ("id", message.id),
                    ("source", message.source),
                    ("kind", message.kind),
                    ("over", str(message.over).lower()),
                )
            },
        )
        return ""

    def check(self) -> str:
        try:
            self._call("get_topic_attributes")
        except NotSent as error:
            if "sns:GetTopicAttributes" not in str(error):
                raise
            return (
                f"{self.arn} cannot be checked (sns:GetTopicAttributes is refused). Sending does "
                "not need this permission: `datalake alerts --test` shows whether it works"
            )
        return f"{self.arn} exists; nothing was sent"

    def _call(self, name: str, **arguments: Any) -> Any:
        try:
            with aws_call(self.arn):
                return getattr(self._client, name)(TopicArn=self.arn, **arguments)
        except Exception as error:
            answer = answer_of(error)
            if answer is not None and answer.plain_code == "notfound":
                raise NotSent(
                    f"SNS: topic {self.arn} does not exist. Create it, or correct "
                    "`alerts.sns_topic_arn`."
                ) from None
            raise NotSent(f"SNS: {as_lake_error(error) or error}") from None

    @cached_property
    def _client(self) -> Any:
        """A client with short timeouts."""
        from botocore.config import Config

        here = replace(self.access, region=self.arn.split(":")[3])
        limits = Config(
            connect_timeout=TIMEOUT, read_timeout=TIMEOUT, retries={"total_max_attempts": 2}
        )
        return here.session().create_client("sns", config=limits)
