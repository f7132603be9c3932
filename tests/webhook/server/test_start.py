"""Starting: choices that cannot be kept end it with one line and exit code 2; little is asked of the machine."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
from pathlib import Path

import pytest

from controlplane.client import wait_for
from gpu2dra_webhook.server import listen
from gpu2dra_webhook.settings import Settings
from webhook.server.running import PATIENCE, SERVICE, Client, Webhook, Webhooks, body


@pytest.fixture(scope="module")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of files that cannot be used."""
    folder = tmp_path_factory.mktemp("spoilt")
    (folder / "policy.yaml").write_text("apiVersion: gpu2dra.dev/v1alpha1\nkind: ConversionPolicy\nrulez: []\n")
    (folder / "no.yaml").write_text("a: [")
    (folder / "certificate").mkdir()
    (folder / "certificate" / "tls.crt").write_text("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")
    (folder / "certificate" / "tls.key").write_text("")
    return folder


def told_at_the_end(webhook: Webhook) -> str:
    """Wait until it has ended for a wrong choice and return its last line; there is no traceback before it."""
    assert webhook.exit_code() == 2
    text = webhook.daemons.log(webhook.name).read_text()
    assert "Traceback" not in text
    return text.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--bind-address=192.0.2.1", "Cannot listen on 192.0.2.1 port 0: Cannot assign requested address."),
        ("--bind-address=nonsense.invalid", "Cannot listen on nonsense.invalid port 0"),
        ("--policy-file={spoilt}/none", "none: No such file or directory"),
        ("--policy-file={spoilt}/policy.yaml", "policy.yaml: /rulez"),
        ("--policy-file={spoilt}/no.yaml", "no.yaml: /: line 1"),
        ("--certificate-dir={spoilt}", "No such file or directory: tls.crt"),
        ("--certificate-dir={spoilt}/certificate", "tls.crt or ca.crt is no certificate that can be used"),
        ("--store=cluster --kubeconfig={spoilt}/none", "No API server to talk to"),
        ("--store=cluster --kubeconfig={spoilt}/policy.yaml", "No API server to talk to"),
        ("--store=cluster", "No API server to talk to"),
        ("--client-ca-file={spoilt}/none", "none cannot be read"),
        ("--port=70000", "70000 is not in the range 0<=x<=65535"),
        ("--idle-timeout=soon", "'soon' is no duration above zero, such as 95, 95s or 24h"),
        ("--idle-timeout=0", "'0' is no duration above zero, such as 95, 95s or 24h"),
        ("--body-limit=0.5", "'0.5' is no size, such as 7340032 or 7Mi"),
        ("--on-api-failure=panic", "'panic' is not one of 'deny', 'allow'"),
        ("--no-such-option", "No such option"),
        ("surplus", "unexpected extra argument (surplus)"),
    ],
)
def test_a_choice_that_cannot_be_kept_ends_it_with_a_line_about_it(
    webhooks: Webhooks, spoilt: Path, arguments: str, told: str
) -> None:
    webhook = webhooks.launch(*arguments.format(spoilt=spoilt).split(), environment={"KUBERNETES_SERVICE_HOST": ""})
    assert told in told_at_the_end(webhook)


@pytest.mark.parametrize("option", ["port", "metrics-port"])
def test_a_port_that_somebody_else_has_ends_it_with_a_line_about_it(webhooks: Webhooks, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        webhook = webhooks.launch(f"--{option}={port}")
        assert f"Cannot listen on 127.0.0.1 port {port}: Address already in use." in told_at_the_end(webhook)


def loopback() -> list[str]:
    """Return the loopback addresses that this machine has."""
    found = []
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with contextlib.suppress(OSError), socket.socket(family) as one:
            one.bind((address, 0))
            found.append(address)
    return found


def test_by_default_it_is_reached_at_addresses_of_both_kinds(webhooks: Webhooks) -> None:
    """Also in a cluster whose pods have IPv6 addresses only, or IPv4 ones only."""
    with webhooks.running(f"--bind-address={Settings().bind_address}") as webhook:
        for address in loopback():
            with socket.create_connection((address, webhook.metrics_port), timeout=PATIENCE) as side:
                assert Client(side).get("/livez").status == 200
            context = ssl.create_default_context(cafile=str(webhook.authority))
            plain = socket.create_connection((address, webhook.port), timeout=PATIENCE)
            with Client(context.wrap_socket(plain, server_hostname=SERVICE)) as client:
                assert client.post(body()).json["response"]["allowed"] is True
        wait_for("it has called itself", lambda: webhook.side("/readyz").status == 200)
        (told,) = [line["address"] for line in webhook.log() if line["msg"] == "serving"]
        assert told == ("::" if socket.has_dualstack_ipv6() else "0.0.0.0")  # noqa: S104 - nothing is bound here


def test_where_there_is_no_ipv6_every_address_is_every_one_of_ipv4(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "has_dualstack_ipv6", lambda: False)
    with listen("::", 0) as opened, listen("127.0.0.1", 0) as other:
        assert (opened.family, opened.getsockname()[0]) == (socket.AF_INET, "0.0.0.0")  # noqa: S104
        assert other.getsockname()[0] == "127.0.0.1"


def test_it_writes_no_file_and_needs_no_home(webhooks: Webhooks, tmp_path: Path) -> None:
    """Have nothing but empty folders that cannot be written, as with a read-only root (known from gunicorn 25.1 on)."""
    tmp_path.chmod(0o555)
    folders = dict.fromkeys(("HOME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "PYTHONPYCACHEPREFIX"), tmp_path)
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        with webhooks.running(environment={name: str(folder) for name, folder in folders.items()}) as webhook:
            with webhook.client() as client:
                assert client.post(body()).json["response"]["allowed"] is True
            assert [line for line in webhook.log() if line["level"] != "info"] == []
            webhook.terminate()
            assert webhook.exit_code() == 0
    finally:
        os.chdir(before)
    assert list(tmp_path.iterdir()) == []


def test_choices_can_be_made_by_the_environment(webhooks: Webhooks) -> None:
    variables = {"GPU2DRA_WEBHOOK_BODY_LIMIT": "100", "GPU2DRA_WEBHOOK_EXCLUDED_NAMESPACES": "team-a team-b"}
    with webhooks.running(environment=variables) as webhook, webhook.client() as client:
        assert client.post(body()).status == 413


def test_settings_of_gunicorn_itself_change_nothing(webhooks: Webhooks) -> None:
    variables = {"GUNICORN_CMD_ARGS": "--workers=3 --timeout=1", "WEB_CONCURRENCY": "3", "PORT": "1"}
    with webhooks.running(environment=variables) as webhook, webhook.client() as client:
        assert client.post(body()).json["response"]["allowed"] is True


def test_it_is_one_process(webhook: Webhook) -> None:
    pid = webhook.daemons.pids()[webhook.name]
    assert Path(f"/proc/{pid}/task/{pid}/children").read_text() == ""
