"""SIGTERM: what an API server has open goes on being answered, and each answer says that it is the last one.

An API server keeps its connections for 90 s and goes on using them when the pod has left the Service
(kubernetes/kubernetes#127335, knative/pkg#1509): an end of file in place of an answer is a refused pod.
"""

from __future__ import annotations

import json

import pytest

from controlplane.client import wait_for
from webhook.server.running import JSON, Client, Webhook, Webhooks, body, request


def is_draining(webhook: Webhook) -> bool:
    return any(line.get("msg", "").startswith("stopping") for line in webhook.log())


def terminate(webhook: Webhook) -> None:
    """Send SIGTERM and wait until it has been heard."""
    webhook.terminate()
    wait_for("the signal is heard", lambda: is_draining(webhook))


def test_open_connections_are_answered_once_more_and_then_it_ends(webhooks: Webhooks) -> None:
    with webhooks.running() as webhook, webhook.client() as one, webhook.client() as other:
        for client in (one, other):
            assert client.post(body()).headers["connection"] == "keep-alive"
        terminate(webhook)
        for client in (one, other):
            answer = client.post(body())
            assert answer.json["response"]["allowed"] is True
            assert answer.headers["connection"] == "close"
            assert client.ended()
        assert webhook.exit_code() == 0


def test_a_request_that_was_on_its_way_is_answered(webhooks: Webhooks) -> None:
    content = body()
    with webhooks.running() as webhook, webhook.client() as client:
        client.send(request("POST", "/mutate", {**JSON, "Content-Length": str(len(content))}) + content[:100])
        terminate(webhook)
        client.send(content[100:])
        answer = client.answer()
        assert answer.json["response"]["allowed"] is True
        assert answer.headers["connection"] == "close"
        assert webhook.exit_code() == 0


def test_new_connections_are_answered_as_long_as_it_goes_on(webhooks: Webhooks) -> None:
    with webhooks.running() as webhook, webhook.client() as holding:
        terminate(webhook)
        with webhook.client() as late:
            assert late.post(body()).headers["connection"] == "close"
        assert holding.post(body()).headers["connection"] == "close"
        assert webhook.exit_code() == 0


def test_it_is_alive_but_not_ready_while_it_ends(webhooks: Webhooks) -> None:
    with webhooks.running() as webhook, webhook.client() as client:
        wait_for("it is ready", lambda: webhook.side("/readyz").status == 200)
        terminate(webhook)
        assert webhook.side("/livez").status == 200
        answer = webhook.side("/readyz")
        assert answer.status == 503
        assert json.loads(answer.body)["missing"] == {"stopping": ["the server ends; others answer"]}
        client.post(body())
        assert webhook.exit_code() == 0


def test_it_does_not_wait_longer_than_it_was_told(webhooks: Webhooks) -> None:
    with webhooks.running("--drain-seconds=1s") as webhook, webhook.client() as client:
        webhook.terminate()
        assert webhook.exit_code() == 0
        assert client.ended()


def test_without_connections_it_ends_at_once(webhooks: Webhooks) -> None:
    with webhooks.running("--drain-seconds=24h") as webhook:
        webhook.terminate()
        assert webhook.exit_code() == 0


@pytest.mark.parametrize("silent", ["plain", "client"])
def test_a_second_signal_ends_it_at_once(webhooks: Webhooks, silent: str) -> None:
    with webhooks.running("--drain-seconds=24h", "--handshake-timeout=24h") as webhook:
        client = Client(webhook.plain()) if silent == "plain" else webhook.client()
        with client:
            wait_for("the connection is counted", lambda: webhook.metric("gpu2dra_open_connections") == 1)
            terminate(webhook)
            webhook.terminate()
            assert webhook.exit_code() == 0


def test_a_scraper_that_keeps_its_connection_does_not_hold_it_up(webhooks: Webhooks) -> None:
    with webhooks.running("--drain-seconds=24h") as webhook:
        assert webhook.side("/metrics").headers["connection"] == "close"
        webhook.terminate()
        assert webhook.exit_code() == 0
