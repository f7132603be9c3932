"""Authorities and leaves: what is in them, and what is refused when it comes back from a Secret."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.verification import PolicyBuilder, Store, VerificationError

from gpu2dra_webhook.certificates.authority import Authority, CertificateError, Leaf, create, issue, parse, to_pem
from webhook.certificates.tls import DAY, HOUR, NAME, Clock, foreign

NOW = Clock().now
YEAR = 365 * DAY


def verify(leaf: Leaf, authority: Authority, at: float, name: str = NAME) -> None:
    policy = PolicyBuilder().store(Store([authority.certificate])).time(datetime.fromtimestamp(at, UTC))
    policy.build_server_verifier(x509.DNSName(name)).verify(x509.load_pem_x509_certificate(leaf.chain), [])


def test_a_leaf_is_verified_by_its_authority_for_each_of_its_names() -> None:
    authority = create(NOW, YEAR)
    leaf = issue(authority, [NAME, "localhost"], NOW, DAY)
    verify(leaf, authority, NOW)
    verify(leaf, authority, NOW, "localhost")
    with pytest.raises(VerificationError):
        verify(leaf, authority, NOW, "other.gpu2dra-system.svc")
    with pytest.raises(VerificationError):
        verify(leaf, create(NOW, YEAR), NOW)


@pytest.mark.parametrize(
    ("at", "accepted"),
    [(-HOUR - 1, False), (-HOUR, True), (DAY, True), (DAY + 1, False)],
    ids=["too early", "a clock an hour behind", "last second", "too late"],
)
def test_a_leaf_is_valid_from_an_hour_before_it_was_made(at: float, accepted: bool) -> None:
    authority = create(NOW, YEAR)
    leaf = issue(authority, [NAME], NOW, DAY)
    if accepted:
        verify(leaf, authority, NOW + at)
    else:
        with pytest.raises(VerificationError):
            verify(leaf, authority, NOW + at)


def test_a_leaf_never_outlives_its_authority() -> None:
    authority = create(NOW, 10 * HOUR)
    assert issue(authority, [NAME], NOW + 4 * HOUR, DAY).ends == NOW + 10 * HOUR


def test_the_next_is_due_after_two_thirds_of_a_life_from_when_it_was_made() -> None:
    authority = create(NOW, 90 * DAY)
    assert authority.renew_at == NOW + 60 * DAY
    assert issue(authority, [NAME], NOW, 24 * HOUR).renew_at == NOW + 16 * HOUR


def test_names_may_be_as_long_as_kubernetes_allows() -> None:
    authority = create(NOW, YEAR)
    name = f"{'s' * 63}.{'n' * 63}.svc"
    verify(issue(authority, [name, "10.0.0.1", "fd00::1"], NOW, DAY), authority, NOW, name)


def test_an_expired_authority_signs_nothing() -> None:
    with pytest.raises(CertificateError, match="has expired or lacks its key"):
        issue(create(NOW, DAY), [NAME], NOW + DAY, DAY)


def test_an_authority_without_its_key_signs_nothing() -> None:
    with pytest.raises(CertificateError, match="has expired or lacks its key"):
        issue(create(NOW, DAY).without_key(), [NAME], NOW, DAY)


def test_authorities_come_back_from_pem_with_the_keys_that_they_had() -> None:
    both = create(NOW, YEAR).without_key(), create(NOW, YEAR)
    certificates, keys = to_pem(both)
    assert certificates.count(b"BEGIN CERTIFICATE") == 2
    assert keys.count(b"BEGIN PRIVATE KEY") == 1
    back = parse(certificates, keys)
    assert back == both
    assert [one.key_pem for one in back] == [b"", both[1].key_pem]


def test_nothing_comes_back_from_nothing() -> None:
    assert parse(b"", b"\n") == ()


RSA = foreign(NOW, key=rsa.generate_private_key(public_exponent=65537, key_size=2048))
GOOD = create(NOW, YEAR)


@pytest.mark.parametrize(
    ("certificates", "keys", "message"),
    [
        (b"garbage", b"", "the certificates cannot be read"),
        (GOOD.pem[:200], b"", "the certificates cannot be read"),
        (GOOD.pem, b"garbage", "the private keys cannot be read"),
        (GOOD.pem, GOOD.key_pem.replace(b"M", b"N", 3), "a private key cannot be read"),
        (GOOD.pem, foreign(NOW, encrypted=True).key, "a private key cannot be read"),
        (GOOD.pem, create(NOW, YEAR).key_pem, "a private key belongs to none of the certificates"),
        (b"", GOOD.key_pem, "a private key belongs to none of the certificates"),
        (RSA.certificate, RSA.key, "a private key is not one of an elliptic curve"),
        (
            foreign(NOW, key=GOOD.key).certificate,
            GOOD.key_pem,
            "a certificate that has a key is not one of an authority",
        ),
    ],
    ids=["garbage", "cut", "garbage key", "bent key", "encrypted", "other key", "key alone", "rsa", "leaf"],
)
def test_what_cannot_be_used_is_refused_with_a_reason(certificates: bytes, keys: bytes, message: str) -> None:
    with pytest.raises(CertificateError, match=message):
        parse(certificates, keys)


def test_keys_are_on_a_curve_and_in_no_representation() -> None:
    leaf = issue(GOOD, [NAME], NOW, DAY)
    key = serialization.load_pem_private_key(leaf.chain, password=None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    assert key.curve.name == "secp256r1"
    assert "key" not in repr(GOOD).lower()
    assert "KEY" not in repr(leaf)
