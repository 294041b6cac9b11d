"""Who may see and do what: roles, tokens, users named by a proxy, and the audit."""

import hmac
import json
import logging
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256

from starlette.requests import Request

from datalake_assets.instance.links import LOCAL
from eventlake.rules import clock
from eventlake.rules.errors import UsageError

TOKEN_VARIABLE = "DATALAKE_CONSOLE_TOKEN"
VIEW_TOKEN_VARIABLE = "DATALAKE_CONSOLE_VIEW_TOKEN"
USER_HEADER_VARIABLE = "DATALAKE_CONSOLE_USER_HEADER"
PROXIES_VARIABLE = "DATALAKE_CONSOLE_PROXIES"
OPERATORS_VARIABLE = "DATALAKE_CONSOLE_OPERATORS"
COOKIE = "datalake_console"
_SHORTEST = 16  # characters of a token

_audit = logging.getLogger("datalake.console.audit")


class Role(StrEnum):
    VIEWER = "viewer"
    OPERATOR = "operator"  # may also replay and use SQL


@dataclass(frozen=True, slots=True)
class User:
    name: str
    role: Role

    @property
    def operates(self) -> bool:
        return self.role is Role.OPERATOR


@dataclass(frozen=True)
class Access:
    """How users are recognised: by a token, by a proxy, or, on this machine alone, not at all."""

    tokens: dict[Role, str] = field(default_factory=dict)
    user_header: str = ""
    proxies: frozenset[str] = frozenset(LOCAL)
    operators: frozenset[str] = frozenset()
    secret: str = field(default_factory=lambda: secrets.token_hex(32))

    @classmethod
    def of(cls, host: str, environ: Mapping[str, str]) -> "Access":
        """As the environment sets it; an address that others can reach needs a token or a proxy."""
        variables = {Role.OPERATOR: TOKEN_VARIABLE, Role.VIEWER: VIEW_TOKEN_VARIABLE}
        tokens = {role: environ[name] for role, name in variables.items() if environ.get(name)}
        header = environ.get(USER_HEADER_VARIABLE, "")
        for role, token in tokens.items():
            if len(token) < _SHORTEST:
                raise UsageError(
                    f"${variables[role]} has {len(token)} characters; use {_SHORTEST} or more, "
                    "such as those of `openssl rand -hex 32`."
                )
        if host not in LOCAL and not tokens and not header:
            raise UsageError(
                f"The console would be open to everybody who can reach {host}. Set "
                f"${TOKEN_VARIABLE} to a long random token, or ${USER_HEADER_VARIABLE} to the "
                "header in which your proxy names the user, or listen on 127.0.0.1."
            )
        proxies = _names(environ.get(PROXIES_VARIABLE, "")) or frozenset(LOCAL)
        return cls(tokens, header, proxies, _names(environ.get(OPERATORS_VARIABLE, "")))

    def user(self, request: Request) -> User | None:
        """Who asks; None if nobody is known and somebody has to be."""
        if self.user_header:
            name = request.headers.get(self.user_header, "")
            if name and request.client and request.client.host in self.proxies:
                role = Role.OPERATOR if name in self.operators else Role.VIEWER
                return User(name, role)
        if self.tokens:
            return self._by_token(request)
        return None if self.user_header else User("local", Role.OPERATOR)

    def _by_token(self, request: Request) -> User | None:
        bearer = request.headers.get("authorization", "").removeprefix("Bearer ")
        cookie = request.cookies.get(COOKIE, "")
        for role, token in self.tokens.items():
            if _same(bearer, token) or _same(cookie, self.session(role)):
                return User(f"token:{role}", role)
        return None

    def role_of(self, token: str) -> Role | None:
        return next((role for role, known in self.tokens.items() if _same(token, known)), None)

    def session(self, role: Role) -> str:
        """The cookie of who gave the token of a role: useless after the token has changed."""
        return self._signed(f"session:{role}:{self.tokens[role]}", self.tokens[role])

    def csrf(self, user: User) -> str:
        """A form has it that came from this console, and no page of another site can read it."""
        return self._signed(f"form:{user.name}", self.secret)

    def is_form_of(self, user: User, token: str) -> bool:
        return _same(token, self.csrf(user))

    def _signed(self, text: str, key: str) -> str:
        return hmac.new(key.encode(), text.encode(), sha256).hexdigest()


def _same(a: str, b: str) -> bool:
    return hmac.compare_digest(a.encode(), b.encode())


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())


def audit(user: User, action: str, **what: object) -> None:
    """One line for each download, query and replay: JSON on stderr."""
    line = {"at": f"{clock.now():%Y-%m-%dT%H:%M:%SZ}", "user": user.name, "action": action, **what}
    _audit.info(json.dumps(line, default=str))
