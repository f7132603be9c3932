"""Where clients have to show a certificate: only the API server is answered, and probes go by the other port."""

from __future__ import annotations

import shutil
import ssl
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from controlplane.client import wait_for
from controlplane.pki import Authority
from webhook.server.running import SERVICE, Client, Webhook, Webhooks, body

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return the authority of the API server's client certificate."""
    return Authority(tmp_path_factory.mktemp("clients"))


@pytest.fixture(scope="module")
def guarded(webhooks: Webhooks, clients: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Webhook]:
    """Return a webhook that answers only the client named kube-apiserver."""
    folder = tmp_path_factory.mktemp("guarded") / "served"
    shutil.copytree(webhooks.served, folder)
    # Both authorities of this test have one name: with the right one at hand nobody takes the other for it.
    shutil.copy(webhooks.authority, folder / "ca.crt")
    options = [
        f"--certificate-dir={folder}",
        f"--client-ca-file={clients.certificate}",
        "--client-names=kube-apiserver",
    ]
    with webhooks.running(*options) as running:
        yield running


def as_client(webhook: Webhook, pair: tuple[Path, Path] | None) -> Client:
    context = ssl.create_default_context(cafile=str(webhook.authority))
    if pair:
        context.load_cert_chain(*pair)
    return Client(context.wrap_socket(webhook.plain(), server_hostname=SERVICE))


def test_the_api_server_is_answered(guarded: Webhook, clients: Authority) -> None:
    with as_client(guarded, clients.client("kube-apiserver")) as client:
        for _ in range(2):
            assert client.post(body()).json["response"]["allowed"] is True


def test_whoever_shows_no_certificate_is_not(guarded: Webhook) -> None:
    with as_client(guarded, None) as client, pytest.raises((ssl.SSLError, EOFError, ConnectionError)):
        client.post(body())


def test_a_certificate_of_another_name_is_not_enough(guarded: Webhook, clients: Authority) -> None:
    with (
        as_client(guarded, clients.client("somebody")) as client,
        pytest.raises((ssl.SSLError, EOFError, ConnectionError)),
    ):
        client.post(body())


def test_a_certificate_of_another_authority_is_not_enough(guarded: Webhook, tmp_path: Path) -> None:
    with (
        as_client(guarded, Authority(tmp_path).client("kube-apiserver")) as client,
        pytest.raises((ssl.SSLError, EOFError, ConnectionError)),
    ):
        client.post(body())


def test_it_becomes_ready_without_a_certificate_of_its_own(guarded: Webhook) -> None:
    wait_for("it is ready", lambda: guarded.side("/readyz").status == 200)
