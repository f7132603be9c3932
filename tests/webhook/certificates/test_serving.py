"""The TLS endpoint, by real sockets: leaves are exchanged under open connections, and none is served after its end."""

from __future__ import annotations

import os
import ssl
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from gpu2dra_webhook.certificates.authority import CertificateError, Leaf, create, issue
from gpu2dra_webhook.certificates.serving import Endpoint, Renew, server_names
from gpu2dra_webhook.settings import Settings
from webhook.certificates.tls import (
    DAY,
    HOUR,
    NAME,
    Clock,
    Foreign,
    certificate_of,
    connected,
    echo,
    foreign,
    served,
    serving,
    trusting,
)

CA = create(time.time(), 365 * DAY)


@pytest.fixture
def clock() -> Clock:
    """Return a clock that shows the real time, which the clients judge by, until it is set."""
    return Clock(time.time())


def leaf(clock: Clock, lifetime: float = DAY) -> Leaf:
    return issue(CA, [NAME, "127.0.0.1"], clock(), lifetime)


def loaded(pair: Foreign) -> Leaf:
    return Leaf(pair.certificate + pair.key, 0, float("inf"))


def never(_now: float) -> None:
    """Renew nothing."""


def endpoint(clock: Clock, first: Leaf | None, renew: Renew = never) -> Endpoint:
    made = Endpoint(clock, renew)
    if first:
        made.use(first)
    return made


def test_a_connection_outlives_an_exchange_of_the_leaf(clock: Clock) -> None:
    tested = endpoint(clock, leaf(clock))
    with serving(tested.context) as address, connected(address, trusting(CA.pem)) as client:
        first = certificate_of(client)
        assert echo(client, b"before") == b"before"
        tested.use(leaf(clock))
        assert echo(client, b"after") == b"after"
        assert served(address, CA.pem) != first
        assert echo(client, b"and after that") == b"and after that"


def test_no_handshake_fails_while_leaves_are_exchanged(clock: Clock) -> None:
    tested = endpoint(clock, leaf(clock))
    done = threading.Event()

    def exchange() -> int:
        exchanges = 0
        while not done.wait(0.001):
            tested.use(leaf(clock))
            exchanges += 1
        return exchanges

    with serving(tested.context) as address, ThreadPoolExecutor(4) as pool:
        exchanging = pool.submit(exchange)
        shown = list(pool.map(lambda _: served(address, CA.pem).serial_number, range(150)))
        done.set()
        assert exchanging.result() > 1
    assert len(shown) == 150
    assert len(set(shown)) > 1


def test_a_leaf_with_another_kind_of_key_leaves_nothing_behind(clock: Clock) -> None:
    old = foreign(clock(), key=rsa.generate_private_key(public_exponent=65537, key_size=2048))
    new = foreign(clock())
    tested = endpoint(clock, loaded(old))
    client = trusting(old.certificate + new.certificate)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    client.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")  # can be had with an RSA key alone
    with serving(tested.context) as address:
        with connected(address, client):
            pass
        tested.use(loaded(new))
        with pytest.raises(ssl.SSLError, match="HANDSHAKE_FAILURE"), connected(address, client):
            pass


def test_a_leaf_that_has_expired_is_renewed_in_the_handshake(clock: Clock) -> None:
    clock.now = int(clock.now)  # certificates know whole seconds
    tested = endpoint(clock, leaf(clock, lifetime=60), lambda now: issue(CA, [NAME], now, DAY))
    with serving(tested.context) as address:
        first = served(address, CA.pem)
        clock.now += 53
        assert served(address, CA.pem) == first
        clock.now += 1  # in its last tenth: by the time that the client looks at it, it may have ended
        second = served(address, CA.pem)
        assert second != first
        assert served(address, CA.pem) == second


def test_a_leaf_is_renewed_when_the_clock_was_set_back_before_its_begin(clock: Clock) -> None:
    clock.now += HOUR / 2
    tested = endpoint(clock, leaf(clock), lambda now: issue(CA, [NAME], now, 3 * HOUR))
    first = tested.leaf
    clock.now -= HOUR + 1
    with serving(tested.context) as address:
        served(address, CA.pem)
    assert tested.leaf != first


def test_a_leaf_that_has_expired_is_never_served(clock: Clock) -> None:
    tested = endpoint(clock, leaf(clock, lifetime=60))
    with serving(tested.context) as address, connected(address, trusting(CA.pem)) as before:
        clock.now += 59
        served(address, CA.pem)
        clock.now += 2
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_EXPIRED"), connected(address, trusting(CA.pem)):
            pass
        assert echo(before, b"open connections go on") == b"open connections go on"


def test_without_a_leaf_handshakes_are_refused_until_there_is_one(clock: Clock) -> None:
    tested = endpoint(clock, None)
    with serving(tested.context) as address:
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_UNKNOWN"), connected(address, trusting(CA.pem)):
            pass
        tested.use(leaf(clock))
        served(address, CA.pem)


def test_an_error_while_renewing_ends_that_handshake_alone(clock: Clock) -> None:
    errors = [OSError("no entropy")]

    def renew(now: float) -> Leaf:
        if errors:
            raise errors.pop()
        return issue(CA, [NAME], now, DAY)

    tested = endpoint(clock, None, renew)
    with serving(tested.context) as address:
        with pytest.raises(ssl.SSLError, match="INTERNAL_ERROR"), connected(address, trusting(CA.pem)):
            pass
        served(address, CA.pem)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (lambda now: Foreign(foreign(now).certificate, foreign(now).key), "key values mismatch"),
        (lambda now: foreign(now, encrypted=True), "the key is encrypted"),
        (lambda now: Foreign(b"garbage", foreign(now).key), "certificate and key do not go together"),
        (lambda now: Foreign(foreign(now).certificate, b""), "certificate and key do not go together"),
    ],
    ids=["another's key", "encrypted key", "no certificate", "no key"],
)
def test_a_pair_that_cannot_be_loaded_changes_nothing(
    clock: Clock, broken: Callable[[float], Foreign], message: str
) -> None:
    tested = endpoint(clock, leaf(clock))
    with serving(tested.context) as address:
        first = served(address, CA.pem)
        with pytest.raises(CertificateError, match=message):
            tested.use(loaded(broken(clock())))
        assert served(address, CA.pem) == first


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_tls_versions_of_today_are_spoken(clock: Clock, version: ssl.TLSVersion) -> None:
    client = trusting(CA.pem)
    client.minimum_version = client.maximum_version = version
    with serving(endpoint(clock, leaf(clock)).context) as address, connected(address, client) as connection:
        assert connection.version() == f"TLSv1.{version - ssl.TLSVersion.TLSv1}"


def test_tls_1_3_is_preferred(clock: Clock) -> None:
    with serving(endpoint(clock, leaf(clock)).context) as address, connected(address, trusting(CA.pem)) as connection:
        assert connection.version() == "TLSv1.3"


def test_tls_1_1_is_refused(clock: Clock) -> None:
    client = trusting(CA.pem)
    client.set_ciphers("ALL:@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        client.minimum_version = client.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        serving(endpoint(clock, leaf(clock)).context) as address,
        pytest.raises(ssl.SSLError, match="ALERT_PROTOCOL_VERSION"),
        connected(address, client),
    ):
        pass


def test_a_cipher_without_authenticated_encryption_is_refused(clock: Clock) -> None:
    pair = foreign(clock(), key=rsa.generate_private_key(public_exponent=65537, key_size=2048))
    client = trusting(pair.certificate)
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    client.set_ciphers("ECDHE-RSA-AES256-SHA384")
    with (
        serving(endpoint(clock, loaded(pair)).context) as address,
        pytest.raises(ssl.SSLError, match="HANDSHAKE_FAILURE"),
        connected(address, client),
    ):
        pass


def test_no_tickets_are_handed_out(clock: Clock) -> None:
    with serving(endpoint(clock, leaf(clock)).context) as address, connected(address, trusting(CA.pem)) as client:
        assert echo(client, b"tickets come before the first answer") == b"tickets come before the first answer"
        assert client.session is not None
        assert not client.session.has_ticket


def test_a_client_that_names_no_server_gets_the_leaf_too(clock: Clock) -> None:
    client = trusting(CA.pem)
    with serving(endpoint(clock, leaf(clock)).context) as address, connected(address, client, "127.0.0.1"):
        pass


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="this system has no files in memory")
def test_a_key_is_loaded_without_a_file(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nowhere")
    endpoint(clock, leaf(clock))


def test_the_names_are_those_of_the_service_and_those_asked_for() -> None:
    settings = Settings(namespace="gpu2dra-system", service_name="gpu2dra", server_names=("localhost",))
    assert server_names(settings) == (
        "gpu2dra.gpu2dra-system.svc",
        "gpu2dra.gpu2dra-system.svc.cluster.local",
        "gpu2dra.gpu2dra-system",
        "localhost",
    )
