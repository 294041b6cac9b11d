"""Settings of a Hive metastore: where it is, and how to connect."""

import re
from enum import StrEnum
from typing import Annotated

from pydantic import AfterValidator, Field

from eventlake.settings.fields import SECRET, VARIABLE, SettingsGroup

_SERVER = r"thrift://[^\s/:,@]+(:\d{1,5})?"
_SERVERS = re.compile(rf"{_SERVER}(,{_SERVER})*", re.ASCII)
_PORT = 9083


class Sasl(StrEnum):
    """How to sign in to the metastore."""

    NONE = "none"
    PLAIN = "plain"  # user and password
    KERBEROS = "kerberos"  # the ticket of the user that runs this


def _servers(text: str) -> str:
    if not _SERVERS.fullmatch(text):
        raise ValueError("allowed: thrift://host[:port], several separated by commas")
    return text


def _password(text: str) -> str:
    if not VARIABLE.fullmatch(text):
        raise ValueError("allowed: $NAME, the environment variable that holds it; never itself")
    return text


class Hive(SettingsGroup):
    """How to connect to a Hive metastore."""

    uri: Annotated[
        str | None,
        AfterValidator(lambda text: text and _servers(text)),
        Field(description="allowed: thrift://host[:port]"),
    ] = None
    tls: Annotated[bool, Field(description="allowed: true | false")] = False
    sasl: Annotated[Sasl, Field(description=f"allowed: {' | '.join(Sasl)}")] = Sasl.NONE
    user: Annotated[str, Field(min_length=1, description="allowed: a user's name")] | None = None
    password: Annotated[
        str,
        AfterValidator(_password),
        Field(description="allowed: $NAME of an environment variable", json_schema_extra=SECRET),
    ] = "$DATALAKE_HIVE_PASSWORD"
    kerberos_service: Annotated[
        str, Field(pattern=r"^[\w-]+$", description="allowed: the first part of a principal")
    ] = "hive"

    @property
    def servers(self) -> list[tuple[str, int]]:
        """Host and port of each server, in the order in which they are tried."""
        hosts = (uri.removeprefix("thrift://") for uri in (self.uri or "").split(",") if uri)
        split = (host.partition(":") for host in hosts)
        return [(host, int(port or _PORT)) for host, _, port in split]
