"""Keys, certificates and kubeconfigs of a control plane that lives for one test run."""

from __future__ import annotations

import base64
import ipaddress
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from pathlib import Path

# Clocks of containers and hosts differ by seconds, a suite runs for minutes, `make cluster` for days.
_SLACK = timedelta(hours=1)
_LIFE = timedelta(days=30)


class Authority:
    """A certificate authority whose key never leaves the process; its certificate is written to a folder.

    A `bare` one has written nothing into its certificates that RFC 5280 asks for and OpenSSL and Go do without: what
    a key is for, and the identifiers of keys.
    """

    def __init__(self, folder: Path, *, bare: bool = False) -> None:
        self._folder = folder
        self._bare = bare
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "gpu2dra-test-ca")])
        usage = x509.KeyUsage(
            digital_signature=True,
            content_commitment=False,
            key_encipherment=False,
            data_encipherment=False,
            key_agreement=False,
            key_cert_sign=True,
            crl_sign=True,
            encipher_only=False,
            decipher_only=False,
        )
        builder = self._builder(self._name, self._key.public_key()).add_extension(
            x509.BasicConstraints(ca=True, path_length=0), critical=True
        )
        if not bare:
            identifier = x509.SubjectKeyIdentifier.from_public_key(self._key.public_key())
            builder = builder.add_extension(usage, critical=True).add_extension(identifier, critical=False)
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))

    def server(self, name: str, hosts: Sequence[str]) -> tuple[Path, Path]:
        """Write a serving certificate for DNS names and IP addresses; return the files of certificate and key."""
        names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
        return self._leaf(name, [], ExtendedKeyUsageOID.SERVER_AUTH, names)

    def client(self, user: str, groups: Sequence[str] = ()) -> tuple[Path, Path]:
        """Write a client certificate; the API server takes user and groups from it. Returns certificate and key."""
        return self._leaf(user, groups, ExtendedKeyUsageOID.CLIENT_AUTH, None)

    def kubeconfig(self, server: str, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig that holds all it needs, for a user of these groups; return its path."""
        certificate, key = self.client(user, groups)
        credentials = {"client-certificate-data": _base64(certificate), "client-key-data": _base64(key)}
        return self._kubeconfig(server, user, credentials)

    def token_kubeconfig(self, server: str, user: str, token: str) -> Path:
        """Write a kubeconfig that holds a bearer token, under the name of its user; return its path."""
        return self._kubeconfig(server, user, {"token": token})

    def _kubeconfig(self, server: str, user: str, credentials: Mapping[str, str]) -> Path:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "gpu2dra",
                    "cluster": {"server": server, "certificate-authority-data": _base64(self.certificate)},
                }
            ],
            "users": [{"name": user, "user": credentials}],
            "contexts": [{"name": "gpu2dra", "context": {"cluster": "gpu2dra", "user": user}}],
            "current-context": "gpu2dra",
        }
        path = self._folder / f"{_file_name(user)}.kubeconfig"
        _write_private(path, json.dumps(config, indent=2).encode())  # JSON is YAML
        return path

    def _leaf(
        self,
        common_name: str,
        organizations: Sequence[str],
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None,
    ) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
        subject = x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])
        builder = self._builder(subject, key.public_key()).add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        if not self._bare:
            issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
            builder = builder.add_extension(issuer, critical=False)
        certificate = self._folder / f"{_file_name(common_name)}.crt"
        certificate.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        return certificate, _write_key(key, certificate.with_suffix(".key"))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SLACK)
            .not_valid_after(now + _LIFE)
        )


def service_account_key(folder: Path) -> Path:
    """Write the RSA key that signs service account tokens; return its path."""
    return _write_key(rsa.generate_private_key(public_exponent=65537, key_size=2048), folder / "service-account.key")


def _write_key(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, path: Path) -> Path:
    encoded = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return _write_private(path, encoded)


def _write_private(path: Path, content: bytes) -> Path:
    path.touch(mode=0o600)
    path.write_bytes(content)
    return path


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def _file_name(user: str) -> str:
    return user.replace(":", "-").replace("/", "-")


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
