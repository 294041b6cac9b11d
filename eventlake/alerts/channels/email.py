"""E-mail by SMTP."""

import smtplib
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import format_datetime, parseaddr

from eventlake.alerts.channels import TIMEOUT, NotSent
from eventlake.alerts.state import Message
from eventlake.rules.errors import InvalidSetting
from eventlake.settings.alerts import Alerts, Security, secret_of


@dataclass(frozen=True)
class Email:
    """Sends one e-mail to all recipients."""

    alerts: Alerts
    environ: Mapping[str, str] = field(repr=False)

    @property
    def address(self) -> str:
        return f"{', '.join(self.alerts.email_to)} through {self._server}"

    @property
    def _server(self) -> str:
        return f"{self.alerts.smtp_host}:{self.alerts.port}"

    @property
    def _sender(self) -> str:
        return self.alerts.email_from or self.alerts.email_to[0]

    def send(self, message: Message) -> str:
        with self._session() as server:
            refused = server.send_message(self._mail(message), self._sender, self.alerts.email_to)
        if not refused:
            return ""
        listed = "; ".join(f"{to} ({_said(answer)})" for to, answer in refused.items())
        return f"The mail server refused some recipients: {listed}."

    def check(self) -> str:
        with self._session() as server:
            server.noop()
        by = {Security.STARTTLS: "STARTTLS", Security.TLS: "TLS", Security.NONE: "no encryption"}
        user = f", logged in as {self.alerts.smtp_user}" if self.alerts.smtp_user else ""
        return f"{self._server} answers, {by[self.alerts.smtp_security]}{user}; nothing was sent"

    def _mail(self, message: Message) -> EmailMessage:
        mail = EmailMessage()
        mail["Subject"] = "[datalake] " + " ".join(message.title.split())
        mail["From"] = self._sender
        mail["To"] = ", ".join(self.alerts.email_to)
        mail["Date"] = format_datetime(message.at)
        domain = parseaddr(self._sender)[1].rpartition("@")[2]
        mail["Message-ID"] = f"<{message.id}.{message.at:%Y%m%d%H%M%S}@{domain}>"
        mail["Auto-Submitted"] = "auto-generated"  # no out-of-office replies
        mail["X-Datalake-Source"] = message.source
        mail["X-Datalake-Kind"] = message.kind
        mail.set_content(message.text + "\n")
        return mail

    @contextmanager
    def _session(self) -> Iterator[smtplib.SMTP]:
        """A session with the mail server; its errors become `NotSent`."""
        try:
            with self._connected() as server:
                if self.alerts.smtp_user:
                    password = secret_of("smtp_password", self.alerts.smtp_password, self.environ)
                    server.login(self.alerts.smtp_user, password)
                yield server
        except InvalidSetting as error:
            raise NotSent(str(error)) from None
        except (smtplib.SMTPException, OSError) as error:
            raise NotSent(f"mail server {self._server}: {_cause(error)}") from None

    def _connected(self) -> smtplib.SMTP:
        host, port = self.alerts.smtp_host, self.alerts.port
        if self.alerts.smtp_security is Security.TLS:
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(host, port, timeout=TIMEOUT, context=context)
        server = smtplib.SMTP(host, port, timeout=TIMEOUT)
        if self.alerts.smtp_security is Security.STARTTLS:
            try:
                server.starttls(context=ssl.create_default_context())
            except BaseException:
                server.close()
                raise
        return server


def _cause(error: Exception) -> str:
    """The reason of a failure, and the remedy."""
    if isinstance(error, smtplib.SMTPAuthenticationError):
        return (
            f"the login was refused ({_said((error.smtp_code, error.smtp_error))}). Correct "
            "`alerts.smtp_user`, and the variable that `alerts.smtp_password` names."
        )
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        listed = "; ".join(f"{to} ({_said(said)})" for to, said in error.recipients.items())
        return f"all recipients were refused: {listed}. Correct `alerts.email_to`."
    if isinstance(error, smtplib.SMTPSenderRefused):
        said = _said((error.smtp_code, error.smtp_error))
        return f"the sender {error.sender} was refused ({said}). Correct `alerts.email_from`."
    if isinstance(error, smtplib.SMTPNotSupportedError):
        return f"{error} Correct `alerts.smtp_security` (starttls | tls | none) or the port."
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted ({error.verify_message}). Set `alerts.smtp_host` to "
            "the name in the certificate; for an authority of your own set SSL_CERT_FILE."
        )
    if isinstance(error, ssl.SSLError):
        return f"no TLS ({error.reason}). Correct `alerts.smtp_security` or the port."
    if isinstance(error, smtplib.SMTPResponseException):
        return f"it answered {_said((error.smtp_code, error.smtp_error))}."
    said = str(error) or type(error).__name__
    return f"{said}. Correct `alerts.smtp_host` and the port, or find out why it does not answer."


def _said(answer: tuple[int, bytes | str]) -> str:
    code, text = answer
    writer = text.decode(errors="replace") if isinstance(text, bytes) else text
    return f"{code} {' '.join(writer.split())}"[:300]
