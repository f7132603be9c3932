"""Who the webhook is to the API server when it runs in a pod: its service account, whose token is exchanged."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kubernetes.config import incluster_config

from gpu2dra_webhook.cluster import client
from gpu2dra_webhook.cluster.client import Api

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from controlplane.testbed import Cluster


class Impatient(incluster_config.InClusterConfigLoader):
    """The official loader, which looks at the token's file at every call, and not once a minute."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)  # type: ignore[no-untyped-call]
        self._token_refresh_period = dt.timedelta(0)


def who_am_i(api: Api) -> str:
    """Return what the API server takes the caller for."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = api.read("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    return str(answer["status"]["userInfo"]["username"])


def test_a_token_that_was_exchanged_is_used(cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = urlsplit(cluster.plane.server)
    token = tmp_path / "token"
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", str(server.hostname))
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(server.port))
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(cluster.plane.certificate_authority))
    monkeypatch.setattr(incluster_config, "InClusterConfigLoader", Impatient)
    seen = []
    api = None
    for account in ("one", "two"):
        cluster.client.create(cluster.object("v1", "ServiceAccount", account))
        token.write_text(cluster.plane.token(cluster.namespace, account))
        api = api or client.connect()
        seen.append(who_am_i(api))
    assert api is not None
    api.close()
    assert seen == [f"system:serviceaccount:{cluster.namespace}:{account}" for account in ("one", "two")]
