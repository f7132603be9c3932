"""The check of client certificates: only the API server, known by its certificate, is let in."""

from __future__ import annotations

import ssl
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from gpu2dra_webhook.certificates.authority import CertificateError
from gpu2dra_webhook.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path


def client_check(settings: Settings) -> ClientCheck | None:
    """Return the check that the settings ask for; CertificateError when its CA cannot be read."""
    return ClientCheck(settings.client_ca_file, settings.client_names) if settings.client_ca_file else None


class ClientCheck:
    """Asks for a client certificate of an authority, and for one of some names (common name or alternative names).

    Without `names` every certificate of the authority will do. Raises CertificateError when `authority_file` is broken.
    """

    def __init__(self, authority_file: Path, names: Collection[str] = ()) -> None:
        self._file = authority_file
        self._names = frozenset(names)
        self._authority = ""
        self.reload()

    def reload(self) -> bool:
        """Read the file again and return whether it holds something new; CertificateError when it is broken."""
        try:
            content = self._file.read_text("ascii")
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=content)
        except (OSError, ValueError, ssl.SSLError) as error:
            raise CertificateError(
                f"The client CA {self._file} cannot be read ({error}); it has to be PEM certificates."
            ) from error
        changed = content != self._authority
        self._authority = content
        return changed

    def configure(self, context: ssl.SSLContext) -> None:
        """Have a server's context ask for the certificate, in every handshake.

        TLS 1.2 resumes sessions without asking again, and Python cannot switch that off; every API server speaks 1.3.
        """
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=self._authority)

    def socket_class(self) -> type[ssl.SSLSocket]:
        """Return the class of sockets that check the client's name at the end of their handshake.

        Made when it is needed: gevent puts a class of its own in place of the standard one.
        """
        check = self._check

        class CheckedSocket(ssl.SSLSocket):
            """A server's socket whose handshake fails for clients of other names."""

            def do_handshake(self, *arguments: Any) -> None:
                """Shake hands, then look at the certificate; SSLCertVerificationError for another name."""
                super().do_handshake(*arguments)
                check(self.getpeercert())

        return CheckedSocket

    def _check(self, certificate: Any) -> None:
        if self._names and not self._names.intersection(_names(certificate or {})):
            raise ssl.SSLCertVerificationError(
                f"the client certificate of {', '.join(sorted(_names(certificate or {})))} is none of those allowed"
            )


def _names(certificate: dict[str, Any]) -> frozenset[str]:
    subject = [value for part in certificate.get("subject", ()) for name, value in part if name == "commonName"]
    return frozenset([*subject, *(value for _kind, value in certificate.get("subjectAltName", ()))])
