"""What the tests of certificates share: a clock to set, a TLS server that echoes, clients, and pairs of others."""

from __future__ import annotations

import contextlib
import secrets
import socket
import ssl
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import NameOID

if TYPE_CHECKING:
    from pathlib import Path

NAME = "gpu2dra.gpu2dra-system.svc"
HOUR = 3600.0
DAY = 24 * HOUR
_TIMEOUT = 10.0


@dataclass
class Clock:
    """Says what it is told to say; at first 2027-01-01."""

    now: float = datetime(2027, 1, 1, tzinfo=UTC).timestamp()

    def __call__(self) -> float:
        """Return the time."""
        return self.now


@contextlib.contextmanager
def serving(context: ssl.SSLContext) -> Iterator[tuple[str, int]]:
    """Serve echo over TLS, each client in a thread of its own; yield the address."""
    listener = socket.create_server(("127.0.0.1", 0))
    clients: list[threading.Thread] = []

    def serve(plain: socket.socket) -> None:
        with contextlib.suppress(OSError), plain, context.wrap_socket(plain, server_side=True) as secure:
            while data := secure.recv(1024):
                secure.sendall(data)

    def accept() -> None:
        with contextlib.suppress(OSError):  # the listener is closed
            while True:
                plain, _ = listener.accept()
                plain.settimeout(_TIMEOUT)
                clients.append(threading.Thread(target=serve, args=(plain,), daemon=True))
                clients[-1].start()

    accepting = threading.Thread(target=accept, daemon=True)
    accepting.start()
    try:
        yield listener.getsockname()
    finally:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in [accepting, *clients]:
            thread.join(_TIMEOUT)


def trusting(pem: bytes) -> ssl.SSLContext:
    """Return a client's context that trusts these certificates and no others."""
    return ssl.create_default_context(cadata=pem.decode())


@contextlib.contextmanager
def connected(address: tuple[str, int], context: ssl.SSLContext, name: str = NAME) -> Iterator[ssl.SSLSocket]:
    """Connect and shake hands; ssl.SSLError when that fails."""
    with (
        socket.create_connection(address, timeout=_TIMEOUT) as plain,
        context.wrap_socket(plain, server_hostname=name) as secure,
    ):
        yield secure


def echo(client: ssl.SSLSocket, text: bytes) -> bytes:
    """Send and return what comes back."""
    client.sendall(text)
    return client.recv(1024)


def certificate_of(client: ssl.SSLSocket) -> x509.Certificate:
    """Return what the server has shown."""
    der = client.getpeercert(binary_form=True)
    assert der is not None
    return x509.load_der_x509_certificate(der)


def served(address: tuple[str, int], pem: bytes, name: str = NAME) -> x509.Certificate:
    """Return what a server shows to a client that trusts these certificates."""
    with connected(address, trusting(pem), name) as client:
        return certificate_of(client)


Key = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey


@dataclass(frozen=True)
class Foreign:
    """A self-signed pair that no code of ours has made."""

    certificate: bytes
    key: bytes

    def into(self, folder: Path, *, ca: bytes | None = None) -> None:
        """Write it as cert-manager's Secret is mounted."""
        (folder / "tls.crt").write_bytes(self.certificate)
        (folder / "tls.key").write_bytes(self.key)
        if ca is not None:
            (folder / "ca.crt").write_bytes(ca)


def foreign(
    now: float, *, names: Sequence[str] = (NAME,), days: float = 90, key: Key | None = None, encrypted: bool = False
) -> Foreign:
    """Make a self-signed pair that is valid for some days from `now` on."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"somebody else {secrets.token_hex(4)}")])
    begins = datetime.fromtimestamp(now, UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begins)
        .not_valid_after(begins + timedelta(days=days))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(one) for one in names]), critical=False)
        .sign(key, hashes.SHA256())
    )
    encryption = serialization.BestAvailableEncryption(b"secret") if encrypted else serialization.NoEncryption()
    return Foreign(
        certificate.public_bytes(serialization.Encoding.PEM),
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption),
    )
