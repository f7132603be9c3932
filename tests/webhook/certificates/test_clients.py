"""The check of client certificates, by real sockets: without one of the right authority and name nobody is heard."""

from __future__ import annotations

import logging
import ssl
import time
from typing import TYPE_CHECKING

import pytest

from controlplane.pki import Authority
from gpu2dra_webhook.certificates.authority import CertificateError, create, issue
from gpu2dra_webhook.certificates.clients import ClientCheck, client_check
from gpu2dra_webhook.certificates.serving import Endpoint
from gpu2dra_webhook.settings import Settings
from webhook.certificates.tls import DAY, NAME, connected, echo, foreign, serving, trusting

if TYPE_CHECKING:
    from pathlib import Path

CA = create(time.time(), 365 * DAY)


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Return the authority that API servers have their client certificates of."""
    return authority_in(tmp_path / "api-server")


def authority_in(folder: Path) -> Authority:
    folder.mkdir()
    return Authority(folder)


def endpoint(clients: ClientCheck) -> Endpoint:
    tested = Endpoint(time.time, lambda now: issue(CA, [NAME], now, DAY), clients)
    tested.use(issue(CA, [NAME], time.time(), DAY))
    return tested


def heard(address: tuple[str, int], pair: tuple[Path, Path] | None) -> bool:
    """Whether a client is answered; in TLS 1.3 it learns only by its first read that its certificate is refused."""
    context = trusting(CA.pem)
    if pair:
        context.load_cert_chain(*pair)
    try:
        with connected(address, context) as client:
            return echo(client, b"hello") == b"hello"
    except (ssl.SSLError, ConnectionResetError, BrokenPipeError):
        return False


def test_only_certificates_of_the_authority_are_heard(authority: Authority, tmp_path: Path) -> None:
    with serving(endpoint(ClientCheck(authority.certificate)).context) as address:
        assert heard(address, authority.client("kube-apiserver"))
        assert not heard(address, None)
        assert not heard(address, authority_in(tmp_path / "other").client("kube-apiserver"))


def test_only_allowed_names_are_heard(authority: Authority) -> None:
    check = ClientCheck(authority.certificate, ["kube-apiserver", "front.example"])
    with serving(endpoint(check).context) as address:
        assert heard(address, authority.client("kube-apiserver"))
        assert not heard(address, authority.client("kubelet"))
        assert not heard(address, None)


@pytest.mark.parametrize(("name", "expected"), [("front.example", True), ("other.example", False)])
def test_an_alternative_name_counts_too(tmp_path: Path, name: str, expected: bool) -> None:
    pair = foreign(time.time(), names=[name])
    pair.into(tmp_path)
    check = ClientCheck(tmp_path / "tls.crt", ["front.example"])
    with serving(endpoint(check).context) as address:
        assert heard(address, (tmp_path / "tls.crt", tmp_path / "tls.key")) is expected


def test_no_session_skips_the_check(authority: Authority) -> None:
    context = endpoint(ClientCheck(authority.certificate)).context
    client = trusting(CA.pem)
    client.load_cert_chain(*authority.client("kube-apiserver"))
    client.maximum_version = ssl.TLSVersion.TLSv1_2  # which would resume sessions
    with serving(context) as address:
        with pytest.raises(ssl.SSLError, match="ALERT_PROTOCOL_VERSION"), connected(address, client):
            pass
        client.maximum_version = ssl.TLSVersion.TLSv1_3
        with connected(address, client) as connection:
            assert echo(connection, b"hello") == b"hello"
            assert connection.session is not None
            assert not connection.session.has_ticket


def test_a_new_client_authority_is_taken_while_serving(authority: Authority, tmp_path: Path) -> None:
    file = tmp_path / "client-ca.crt"
    file.write_bytes(authority.certificate.read_bytes())
    tested = endpoint(ClientCheck(file))
    new = authority_in(tmp_path / "new")
    with serving(tested.context) as address:
        assert heard(address, authority.client("kube-apiserver"))
        file.write_bytes(new.certificate.read_bytes())
        tested.reload_clients()
        assert heard(address, new.client("kube-apiserver"))
        assert not heard(address, authority.client("kube-apiserver"))


def test_a_broken_client_authority_changes_nothing_and_is_told_once(
    authority: Authority, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "client-ca.crt"
    file.write_bytes(authority.certificate.read_bytes())
    tested = endpoint(ClientCheck(file))
    file.write_text("garbage")
    with serving(tested.context) as address:
        for _ in range(3):
            tested.reload_clients()
        assert heard(address, authority.client("kube-apiserver"))
        assert not heard(address, None)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert f"The client CA {file} cannot be read" in warnings[0]


@pytest.mark.parametrize("content", [b"", b"garbage", "Schlüssel".encode(), None], ids=repr)
def test_a_client_authority_that_cannot_be_read_is_refused(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "client-ca.crt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CertificateError, match=r"The client CA .*client-ca.crt cannot be read"):
        client_check(Settings(client_ca_file=file))


def test_without_a_client_authority_nobody_is_asked() -> None:
    assert client_check(Settings()) is None
