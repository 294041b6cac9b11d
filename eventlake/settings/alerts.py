"""Settings of alerts and their defaults: recipients, channels, conditions."""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field

from eventlake.rules.errors import InvalidSetting
from eventlake.settings.fields import SECRET, VARIABLE, Percent, SettingsGroup

_ADDRESS = re.compile(r"[^@\s<>,;]+@[^@\s<>,;]+")


class Security(StrEnum):
    """Encryption of the connection to the mail server."""

    STARTTLS = "starttls"
    TLS = "tls"
    NONE = "none"


def _variable(text: str) -> str:
    if not VARIABLE.fullmatch(text):
        raise ValueError("allowed: $NAME, the environment variable that holds it; never itself")
    return text


def _web_address(text: str) -> str:
    parts = urlsplit(text)
    if not parts.hostname or parts.scheme not in ("http", "https") or parts.username:
        raise ValueError("allowed: https://… (or http://…), without a user in it")
    return text.rstrip("/")


def _hook(text: str) -> str:
    if text.startswith("$"):
        return _variable(text)
    _web_address(text)
    return text


def _address(text: str) -> str:
    if not _ADDRESS.fullmatch(text):
        raise ValueError("allowed: a plain e-mail address, such as data@example.com")
    return text


def _several(value: object) -> object:
    return [value] if isinstance(value, str) else value


Address = Annotated[
    str, AfterValidator(_address), Field(description="allowed: a plain e-mail address")
]
Switch = Annotated[bool, Field(description="allowed: true | false")]


class Alerts(SettingsGroup):
    """Recipients and conditions of alerts; without recipients, no alerts are sent."""

    email_to: Annotated[
        tuple[Address, ...],
        BeforeValidator(_several),
        Field(description="allowed: an e-mail address, or a list of them"),
    ] = ()
    email_from: Address | None = None  # default: the first recipient
    smtp_host: Annotated[
        str, Field(pattern=r"^[^\s/:@]+$", description="allowed: the name of a mail server")
    ] = "localhost"
    smtp_port: Annotated[
        int | None, Field(ge=1, le=65_535, description="allowed: a port from 1 to 65535")
    ] = None
    smtp_security: Annotated[Security, Field(description=f"allowed: {' | '.join(Security)}")] = (
        Security.STARTTLS
    )
    smtp_user: Annotated[str, Field(min_length=1, description="allowed: a user's name")] | None = (
        None
    )
    smtp_password: Annotated[
        str,
        AfterValidator(_variable),
        Field(description="allowed: $NAME of an environment variable", json_schema_extra=SECRET),
    ] = "$DATALAKE_SMTP_PASSWORD"
    sns_topic_arn: (
        Annotated[
            str,
            Field(
                pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,256}$",
                description="allowed: arn:aws:sns:<region>:<account>:<topic>, not a FIFO topic",
            ),
        ]
        | None
    ) = None
    webhook: Annotated[
        str | None,
        AfterValidator(lambda text: text and _hook(text)),
        Field(
            description="allowed: https://…, or $NAME of an environment variable that holds it",
            json_schema_extra=SECRET,
            repr=False,
        ),
    ] = None
    ui_url: Annotated[
        str | None,
        AfterValidator(lambda text: text and _web_address(text)),
        Field(description="allowed: https://… (or http://…) of Dagster's pages"),
    ] = None
    console_url: Annotated[
        str | None,
        AfterValidator(lambda text: text and _web_address(text)),
        Field(description="allowed: https://… (or http://…) of the console"),
    ] = None

    sync_failures: Switch = True
    replay_failures: Switch = True
    failed_checks: Switch = True
    check_warnings: Switch = False
    no_data_hours: (
        Annotated[
            int, Field(ge=1, le=8760, description="allowed: a whole number of hours, 1 to 8760")
        ]
        | None
    ) = None
    rejected_percent: Percent | None = None
    rescued_percent: Percent | None = None
    silent_columns: Switch = False
    show_record: Switch = True

    @property
    def has_recipients(self) -> bool:
        return bool(self.email_to or self.sns_topic_arn or self.webhook)

    @property
    def port(self) -> int:
        """Port of the mail server; the default depends on `smtp_security`."""
        usual = {Security.STARTTLS: 587, Security.TLS: 465, Security.NONE: 25}
        return self.smtp_port or usual[self.smtp_security]


def secret_of(setting: str, value: str, environ: Mapping[str, str]) -> str:
    """The value of a setting, or of the environment variable that it names."""
    if not value.startswith("$"):
        return value
    if not (found := environ.get(value[1:])):
        raise InvalidSetting(
            f"Eventlake has invalid configuration for `alerts.{setting}`: the environment variable "
            f"{value[1:]} is not set where alerts are sent from. Set it for Dagster's daemon and "
            "code location."
        )
    return found
