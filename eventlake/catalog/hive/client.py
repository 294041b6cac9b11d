"""Connections to a Hive metastore: kept open, one per thread that calls, and its errors.

The metastore closes connections that are idle for long, and any of several servers may be gone. So
each call is made again on a new connection; all actions of the catalog may be repeated.
"""

import logging
import os
import re
import ssl
from dataclasses import dataclass, field
from typing import Any

from pymetastore.hive_metastore import ThriftHiveMetastore
from pymetastore.hive_metastore.ttypes import MetaException
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.protocol.TProtocol import TProtocolException
from thrift.Thrift import TApplicationException, TException
from thrift.transport.TSocket import TSocket
from thrift.transport.TSSLSocket import TSSLSocket
from thrift.transport.TTransport import (
    TBufferedTransport,
    TSaslClientTransport,
    TTransportException,
)

from eventlake.catalog.external import attempts
from eventlake.rules.errors import (
    InsufficientPermissions,
    InvalidSetting,
    LakeError,
    ServiceTrouble,
)
from eventlake.settings.hive import Hive, Sasl

logging.getLogger("thrift").setLevel(logging.CRITICAL)  # it logs what it raises
_BROKEN = (TTransportException, TProtocolException, TApplicationException)
_CONNECT_MS = 10_000
_ANSWER_MS = 600_000  # a change of very many partitions takes minutes


@dataclass
class Connections:
    """Open connections that no thread uses; a process that was forked begins with none."""

    process: int = field(default_factory=os.getpid)
    idle: list[tuple[Any, Any]] = field(default_factory=list)

    def close(self) -> None:
        while self.idle:
            self.idle.pop()[1].close()


_known: dict[Hive, Connections] = {}


def _connections(server: Hive) -> Connections:
    found = _known.get(server)
    if found is None or found.process != os.getpid():
        found = _known[server] = Connections()
    return found


def forget_connections() -> None:
    """Close idle connections, so that the next call signs in again."""
    while _known:
        _known.popitem()[1].close()


@dataclass(frozen=True)
class Metastore:
    """A Hive metastore; holds no secret."""

    server: Hive

    def call(self, about: str, method: str, *given: Any) -> Any:
        """One call about a database or a table, made again while the metastore does not answer.

        That something is missing, there already or changed comes as the metastore's exception.
        """
        connections = _connections(self.server)
        for last in attempts():
            idle = connections.idle.pop() if connections.idle else None
            try:
                client, transport = idle or self._open()
            except (TTransportException, OSError) as error:
                failure = self._unreachable(error)
                if last or not isinstance(failure, ServiceTrouble):
                    raise failure from error
                continue
            try:
                answer = getattr(client, method)(*given)
            except (*_BROKEN, OSError) as error:
                transport.close()
                connections.close()  # the server may have closed all that were idle
                if last or isinstance(error, TApplicationException):
                    raise self._unreachable(error) from error
                continue
            except TException as error:
                connections.idle.append((client, transport))
                if known := _refused(error, about):
                    raise known from error
                raise
            connections.idle.append((client, transport))
            return answer
        raise AssertionError("the last attempt has returned or raised")

    def _open(self) -> tuple[Any, Any]:
        """A connection to the first server that answers."""
        failed: Exception | None = None
        for host, port in self.server.servers:
            socket = self._socket(host, port)
            socket.setTimeout(_CONNECT_MS)
            transport = self._transport(socket, host)
            try:
                transport.open()
            except (TTransportException, OSError) as error:
                if socket.handle:
                    transport.close()
                failed = error
                continue
            socket.setTimeout(_ANSWER_MS)
            return ThriftHiveMetastore.Client(TBinaryProtocolAccelerated(transport)), transport
        raise failed or InvalidSetting(
            "Eventlake has invalid configuration for `hive.uri`: it is missing. Set it to "
            "thrift://host:9083."
        )

    def _socket(self, host: str, port: int) -> TSocket:
        if not self.server.tls:
            return TSocket(host, port)
        context = ssl.create_default_context()  # SSL_CERT_FILE names other authorities
        return TSSLSocket(host, port, ssl_context=context, server_hostname=host)

    def _transport(self, socket: TSocket, host: str) -> Any:
        match self.server.sasl:
            case Sasl.NONE:
                return TBufferedTransport(socket)
            case Sasl.PLAIN:
                given = {"username": self.server.user or "", "password": self._password()}
                return TSaslClientTransport(socket, host, "", mechanism="PLAIN", **given)
        service = self.server.kerberos_service
        return TSaslClientTransport(socket, host, service, mechanism="GSSAPI")

    def _password(self) -> str:
        name = self.server.password[1:]
        if found := os.environ.get(name):
            return found
        raise InvalidSetting(
            f"Eventlake has invalid configuration for `hive.password`: the environment variable "
            f"{name} is not set. Set it for every process that runs Eventlake."
        )

    def _unreachable(self, error: Exception) -> LakeError:
        cause = getattr(error, "inner", None) or error
        uri, said = self.server.uri, _one_line(str(cause))
        if isinstance(cause, ssl.SSLError):
            return InvalidSetting(
                f"Eventlake has invalid configuration for `hive.tls`: the TLS connection to "
                f"{uri} failed ({said}). Correct `hive.tls` or `hive.uri`, or set SSL_CERT_FILE to "
                "the authorities that sign the metastore's certificate."
            )
        if isinstance(error, TTransportException) and "SASL" in said.upper():
            return InvalidSetting(
                f"Eventlake has invalid configuration for `hive.sasl`: {uri} refused the sign-in "
                f"({said}). Correct `hive.user` or the password, or `hive.sasl`."
            )
        return ServiceTrouble(
            f"Hive metastore {uri} did not answer as it should, also after retries: {said}. If it "
            "is down, start it; if it is elsewhere, correct `hive.uri`. The next sync tries again."
        )


_NO_FILE_SYSTEM = re.compile(r"No FileSystem for scheme|ClassNotFoundException")
_DENIED = re.compile(
    r"Permission denied|AccessControlException|AuthorizationPermissionMismatch|AccessDenied"
    r"|not allowed|Authorization(?:Failure|Exception)|User .* does not have privileges"
)


def _refused(error: TException, about: str) -> LakeError | None:
    """The error of the lake for a refusal of the metastore; None for what callers expect."""
    if not isinstance(error, MetaException):
        return None
    said = _one_line(error.message or "")
    if _NO_FILE_SYSTEM.search(said):
        return InvalidSetting(
            "Eventlake has invalid configuration for `hive.uri`: the metastore cannot use the "
            f"locations of this lake ({said}). Install the connector of the storage on the "
            "metastore's machine, hadoop-azure for abfss://, hadoop-aws for s3://, and give it "
            "access to the storage (docs/azure.md)."
        )
    if _DENIED.search(said):
        return InsufficientPermissions(
            f"Eventlake does not have permissions to change {about} in the Hive metastore: {said}. "
            "Grant the user of datalake the right to create and alter databases and tables there, "
            "and the metastore's own identity access to the storage."
        )
    return None


def trouble(error: TException, about: str) -> ServiceTrouble:
    """A failure that is none of the expected ones."""
    said = _one_line(getattr(error, "message", "") or str(error))
    return ServiceTrouble(
        f"The Hive metastore failed on {about}: {said[:400]}. Its log has more. The next sync "
        "tries again."
    )


def _one_line(text: str) -> str:
    return " ".join(text.split())
