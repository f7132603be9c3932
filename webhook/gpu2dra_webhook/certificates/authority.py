"""Certificate authorities, and the leaves that they sign: from and to PEM. No I/O, and no clock of its own."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BACKDATE = 3600.0
"""Seconds that a certificate is valid before it was made: an API server's clock may be behind ours."""
_RENEWED_AFTER = 2 / 3
_HANDSHAKE = 10.0
_PRIVATE_KEY = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?-----END \1-----", re.DOTALL)


class CertificateError(Exception):
    """A certificate or key that cannot be used; the message says which, why, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Authority:
    """A certificate authority. Two are equal if their certificates are; without a key it is only trusted."""

    fingerprint: str
    certificate: x509.Certificate = field(compare=False, repr=False)
    key: ec.EllipticCurvePrivateKey | None = field(compare=False, repr=False)

    @property
    def ends(self) -> float:
        """When it expires, in seconds since the epoch."""
        return self.certificate.not_valid_after_utc.timestamp()

    @property
    def renew_at(self) -> float:
        """When the next one should be made."""
        return _renew_at(self.age[0], self.ends)

    @property
    def age(self) -> tuple[float, str]:
        """What authorities are ordered by, oldest first."""
        return self.certificate.not_valid_before_utc.timestamp(), self.fingerprint

    @property
    def pem(self) -> bytes:
        """The certificate."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    @property
    def key_pem(self) -> bytes:
        """The private key; empty without one."""
        return b"" if self.key is None else _key_pem(self.key)

    def usable(self, now: float) -> bool:
        """Whether it has not expired. One that begins in the future counts: then our own clock is behind."""
        return now < self.ends

    def without_key(self) -> Authority:
        """Return what is left of it when it signs no more."""
        return replace(self, key=None)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A serving certificate with its chain and private key, in one PEM text as OpenSSL loads it."""

    chain: bytes = field(repr=False)
    begins: float
    ends: float
    issuer: str = ""
    """Fingerprint of the authority of ours that signed it."""

    @property
    def renew_at(self) -> float:
        """When the next one should be made."""
        return _renew_at(self.begins, self.ends)

    def valid(self, now: float) -> bool:
        """Whether a client accepts it now."""
        return self.begins <= now < self.ends

    def lasts(self, now: float) -> bool:
        """Whether it is valid, and not just about to end: a client looks at it a little later."""
        spare = min(_HANDSHAKE, max(0.0, self.ends - self.begins - BACKDATE) / 10)
        return self.valid(now) and now < self.ends - spare


def fingerprint(der: bytes) -> str:
    """Return the SHA-256 of a certificate, in hex."""
    digest = hashes.Hash(hashes.SHA256())
    digest.update(der)
    return digest.finalize().hex()


def create(now: float, lifetime: float) -> Authority:
    """Make an authority that is valid for `lifetime` seconds from `now` on."""
    key = ec.generate_private_key(ec.SECP256R1())
    serial = x509.random_serial_number()
    # Names differ, so that whoever builds a chain out of an overlapping bundle takes the right one at once.
    name = _name(f"gpu2dra-ca-{serial:x}"[:64])
    certificate = (
        _builder(name, name, key.public_key(), now - BACKDATE, now + lifetime)
        .serial_number(serial)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .sign(key, hashes.SHA256())
    )
    return _authority(certificate, key)


def issue(authority: Authority, names: Iterable[str], now: float, lifetime: float) -> Leaf:
    """Sign a leaf with a new key for DNS names and IP addresses; it never outlives its authority.

    Raises CertificateError when the authority has expired or has no key.
    """
    if authority.key is None or not authority.usable(now):
        raise CertificateError(f"The certificate authority {authority.fingerprint[:8]} has expired or lacks its key.")
    key = ec.generate_private_key(ec.SECP256R1())
    ends = min(now + lifetime, authority.ends)
    issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    certificate = (
        # The names are in the extension alone: a common name may have 64 characters, a Service's name more.
        _builder(_name("gpu2dra-webhook"), authority.certificate.subject, key.public_key(), now - BACKDATE, ends)
        .serial_number(x509.random_serial_number())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(issuer_key, critical=False)
        .sign(authority.key, hashes.SHA256())
    )
    chain = certificate.public_bytes(serialization.Encoding.PEM) + _key_pem(key)
    return Leaf(chain, now - BACKDATE, certificate.not_valid_after_utc.timestamp(), authority.fingerprint)


def parse(certificates: bytes, keys: bytes) -> tuple[Authority, ...]:
    """Return the authorities of a PEM text of certificates and one of keys; keys may be missing, not the other way.

    Raises CertificateError when something else is in there, or a key belongs to none of the certificates.
    """
    try:
        found = x509.load_pem_x509_certificates(certificates) if certificates.strip() else []
        by_public_key = {_public_bytes(key): key for key in _keys(keys)}
        authorities = tuple(_authority(one, by_public_key.pop(_public_bytes(one), None)) for one in found)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise CertificateError(f"the certificates cannot be read ({error})") from error
    if by_public_key:
        raise CertificateError("a private key belongs to none of the certificates")
    if not all(_signs_certificates(one.certificate) for one in authorities if one.key):
        raise CertificateError("a certificate that has a key is not one of an authority")
    return authorities


def to_pem(authorities: Sequence[Authority]) -> tuple[bytes, bytes]:
    """Return certificates and keys as `parse` takes them."""
    return b"".join(one.pem for one in authorities), b"".join(one.key_pem for one in authorities)


def _keys(pem: bytes) -> list[ec.EllipticCurvePrivateKey]:
    keys = []
    for block in _PRIVATE_KEY.finditer(pem):
        try:
            key = serialization.load_pem_private_key(block[0], password=None)
        except (ValueError, TypeError) as error:  # TypeError: it is encrypted
            raise CertificateError("a private key cannot be read") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise CertificateError("a private key is not one of an elliptic curve")
        keys.append(key)
    if pem.strip() and not keys:
        raise CertificateError("the private keys cannot be read")
    return keys


def _authority(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey | None) -> Authority:
    return Authority(fingerprint(certificate.public_bytes(serialization.Encoding.DER)), certificate, key)


def _signs_certificates(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, begins: float, ends: float
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .not_valid_before(datetime.fromtimestamp(begins, UTC))
        .not_valid_after(datetime.fromtimestamp(ends, UTC))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _public_bytes(holder: x509.Certificate | ec.EllipticCurvePrivateKey) -> bytes:
    return holder.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _renew_at(begins: float, ends: float) -> float:
    """Return when two thirds of a life are over, of which the backdated part is none."""
    made = begins + BACKDATE
    return made + (ends - made) * _RENEWED_AFTER
