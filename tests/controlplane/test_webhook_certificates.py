"""The webhook's own certificates on a real API server: one authority for all, a caBundle kept right, rotations unseen.

The replicas are threads, each with a connection, caches and a TLS port of its own, and with the rights that the chart
gives to the webhook; one test starts them as processes.
"""

from __future__ import annotations

import base64
import contextlib
import itertools
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import pytest
from cryptography import x509

from controlplane.client import MERGE_PATCH, Client, Object, wait_for
from controlplane.cluster import ControlPlane, Options
from controlplane.helm import NAMESPACE
from controlplane.installation import installed
from controlplane.testbed import remove_namespace
from gpu2dra_webhook.certificates.authority import create
from gpu2dra_webhook.certificates.files import FromFiles
from gpu2dra_webhook.certificates.selfmanaged import SelfManaged
from gpu2dra_webhook.cluster.client import Api, connect
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.settings import Settings
from webhook.certificates.tls import certificate_of, connected, echo, foreign, served, serving, trusting

if TYPE_CHECKING:
    import ssl
    from pathlib import Path

USER = "system:serviceaccount:certificates:gpu2dra"
OPTIONS = Options(audited_users=[USER])
HOUR = 3600.0
DAY = 24 * HOUR
ENTRIES = ("create.gpu2dra.dev", "update.gpu2dra.dev")
_numbers = itertools.count(1)


@dataclass
class Site:
    """A namespace with rights for the webhook, and a webhook configuration; both are the test's own."""

    plane: ControlPlane
    namespace: str
    replicas: list[Replica] = field(default_factory=list)

    @property
    def client(self) -> Client:
        """A client with all rights."""
        return self.plane.client

    def settings(self, **chosen: Any) -> Settings:
        """Return settings of a replica here."""
        return Settings(namespace=self.namespace, webhook_configuration=self.namespace, **chosen)

    def replica(
        self, clock: Callable[[], float] = time.time, propagation: float | None = None, **chosen: Any
    ) -> Replica:
        """Return a replica that is not started."""
        return Replica(self.settings(**chosen), connect(self.plane.kubeconfig(USER)), clock, propagation)

    def start(
        self,
        count: int = 1,
        clock: Callable[[], float] = time.time,
        propagation: float | None = None,
        **chosen: Any,
    ) -> list[Replica]:
        """Start replicas in one instant; they end with the test."""
        started = [self.replica(clock, propagation, **chosen) for _ in range(count)]
        self.replicas += started
        for replica in started:
            replica.start()
        return started

    def secret(self) -> Object:
        """Return the Secret of the authorities."""
        return self.client.get("v1", "Secret", "gpu2dra-ca", self.namespace)

    def configuration(self) -> Object:
        """Return the webhook configuration."""
        return self.client.get("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", self.namespace)

    def bundles(self) -> list[bytes]:
        """Return the caBundle of each entry."""
        entries = self.configuration()["webhooks"]
        return [base64.b64decode(entry["clientConfig"].get("caBundle") or "") for entry in entries]

    def set_bundles(self, *bundles: bytes) -> None:
        """Write the caBundle of each entry, as somebody else would."""
        entries = self.configuration()["webhooks"]
        for entry, bundle in zip(entries, bundles, strict=True):
            entry["clientConfig"]["caBundle"] = base64.b64encode(bundle).decode()
        self.client.patch(hooks(self.namespace), {"webhooks": entries}, MERGE_PATCH, fieldManager="gitops")

    def settled(self) -> None:
        """Wait until every replica serves a leaf that every entry of the configuration trusts."""
        wait_for("all replicas are trusted", lambda: not any(one.certificates.problems() for one in self.replicas))
        for bundle in self.bundles():
            for replica in self.replicas:
                replica.verified_by(bundle)

    def audited(self, verb: str, resource: str) -> list[Object]:
        """Return what the webhook has sent, as the audit log has it."""
        return [
            event
            for event in self.plane.audit_events(USER)
            if event["verb"] == verb
            and event["objectRef"]["resource"] == resource
            and event["objectRef"].get("name", self.namespace) in (self.namespace, "gpu2dra-ca")
            and event["objectRef"].get("namespace", self.namespace) == self.namespace
        ]


class Replica:
    """One replica: its certificates at work, and a port that echoes."""

    def __init__(self, settings: Settings, api: Api, clock: Callable[[], float], propagation: float | None) -> None:
        self.metrics = Metrics()
        self.api = api
        self.certificates = SelfManaged(settings, api, self.metrics, clock, propagation)
        self._name = f"{settings.service_name}.{settings.namespace}.svc"
        self._serving = contextlib.ExitStack()
        self.address = ("", 0)

    def start(self) -> None:
        """Begin to serve, with or without a leaf, and to look after the certificates."""
        self.address = self._serving.enter_context(serving(self.certificates.ssl_context()))
        self.certificates.start()

    def stop(self) -> None:
        """End both."""
        self.certificates.stop()
        self._serving.close()
        self.api.close()

    def connection(self, bundle: bytes) -> contextlib.AbstractContextManager[ssl.SSLSocket]:
        """Connect as an API server does that trusts a caBundle."""
        return connected(self.address, trusting(bundle), self._name)

    def verified_by(self, bundle: bytes) -> None:
        """Shake hands as an API server does; ssl.SSLError when it would refuse the leaf."""
        with self.connection(bundle):
            pass


def hooks(name: str) -> Object:
    """Return a configuration with two entries, which no request matches."""
    service = {"name": "gpu2dra", "namespace": name, "path": "/mutate"}
    rule = {"apiGroups": ["none.example"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["nothing"]}
    entries = [
        {
            "name": entry,
            "clientConfig": {"service": service},
            "rules": [rule],
            "sideEffects": "None",
            "admissionReviewVersions": ["v1"],
        }
        for entry in ENTRIES
    ]
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": entries,
    }


def rights(name: str) -> list[Object]:
    """Return the rights that the webhook needs for its certificates, and no others."""
    api = "rbac.authorization.k8s.io/v1"
    secrets: Object = {"apiGroups": [""], "resources": ["secrets"]}
    configurations = {
        "apiGroups": ["admissionregistration.k8s.io"],
        "resources": ["mutatingwebhookconfigurations"],
        "resourceNames": [name],
        "verbs": ["get", "patch", "watch"],
    }
    role = [secrets | {"verbs": ["create"]}, secrets | {"resourceNames": ["gpu2dra-ca"], "verbs": ["get", "update"]}]
    here = {"name": name, "namespace": name}
    subject = {"kind": "User", "name": USER, "apiGroup": "rbac.authorization.k8s.io"}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "name": name}
    return [
        {"apiVersion": api, "kind": "ClusterRole", "metadata": {"name": name}, "rules": [configurations]},
        {"apiVersion": api, "kind": "Role", "metadata": here, "rules": role},
        {
            "apiVersion": api,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": reference | {"kind": "ClusterRole"},
            "subjects": [subject],
        },
        {
            "apiVersion": api,
            "kind": "RoleBinding",
            "metadata": here,
            "roleRef": reference | {"kind": "Role"},
            "subjects": [subject],
        },
    ]


def certificates_of(pem: bytes) -> list[x509.Certificate]:
    return x509.load_pem_x509_certificates(pem) if pem else []


def stored(secret: Object, name: str) -> bytes:
    return base64.b64decode(secret["data"].get(name) or "")


class Ahead:
    """The real time, moved."""

    def __init__(self, seconds: float = 0) -> None:
        self.seconds = seconds

    def __call__(self) -> float:
        """Return the time."""
        return time.time() + self.seconds


@pytest.fixture
def bare_site(own_control_plane: ControlPlane) -> Iterator[Site]:
    """Return a site without a webhook configuration."""
    site = Site(own_control_plane, f"certificates-{next(_numbers)}")
    # Without a wait for its service account: no pods come, and the controllers recover slowly from what is done here.
    site.client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": site.namespace}})
    made = [site.client.create(obj) for obj in rights(site.namespace)]
    yield site
    for replica in site.replicas:
        replica.stop()
    site.client.delete(hooks(site.namespace))
    for obj in made:
        site.client.delete(obj)
    remove_namespace(site.client, site.namespace)


@pytest.fixture
def site(bare_site: Site) -> Site:
    """Return a site with a webhook configuration whose caBundles are empty, as the chart leaves them."""
    bare_site.client.create(hooks(bare_site.namespace), fieldManager="helm")
    return bare_site


def test_replicas_that_start_at_once_agree_on_one_authority(site: Site) -> None:
    site.start(8)
    site.settled()
    assert len(certificates_of(stored(site.secret(), "ca.crt"))) == 1
    assert site.bundles() == [stored(site.secret(), "ca.crt")] * 2
    assert site.secret()["metadata"]["labels"] == {"app.kubernetes.io/managed-by": "gpu2dra"}


def test_replicas_that_start_at_once_make_no_storm(site: Site) -> None:
    site.start(8)
    site.settled()
    made = site.secret()["metadata"]["resourceVersion"]
    # Each tries to create the Secret once at most, and to patch the configuration about once.
    assert len(site.audited("create", "secrets")) <= 8
    assert site.audited("update", "secrets") == []
    patches = site.audited("patch", "mutatingwebhookconfigurations")
    assert [event["responseStatus"]["code"] for event in patches].count(200) == 1
    assert len(patches) <= 16
    for replica in site.replicas:
        replica.certificates.turn()
    assert site.secret()["metadata"]["resourceVersion"] == made
    assert site.audited("patch", "mutatingwebhookconfigurations") == patches


def test_no_call_is_refused_for_want_of_rights(site: Site) -> None:
    site.start(2)
    site.settled()
    watches = wait_for("the configuration is watched", lambda: site.audited("watch", "mutatingwebhookconfigurations"))
    secrets = [event for verb in ("get", "create", "update", "list") for event in site.audited(verb, "secrets")]
    sent = [*watches, *secrets, *site.audited("patch", "mutatingwebhookconfigurations")]
    assert {event["responseStatus"]["code"] for event in sent} <= {200, 201, 404, 409}


def test_a_replica_that_watches_can_be_stopped(site: Site) -> None:
    (replica,) = site.start()
    site.settled()
    wait_for("the configuration is watched", lambda: site.audited("watch", "mutatingwebhookconfigurations"))
    stopping = threading.Thread(target=replica.certificates.stop, daemon=True)
    stopping.start()
    wait_for("it has stopped", lambda: not stopping.is_alive())
    names = {"certificates", f"watch-{site.namespace}"}
    assert not names & {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize(
    "spoil",
    [
        lambda right: (b"", b""),
        lambda right: (right, b""),
        lambda right: (foreign(time.time()).certificate, right),
        lambda right: (right + foreign(time.time()).certificate, right),
        lambda right: (b"garbage", b"garbage"),
    ],
    ids=["emptied", "one entry emptied", "one entry replaced", "a stranger added", "garbage"],
)
def test_a_ca_bundle_that_somebody_spoils_is_put_right(
    site: Site, spoil: Callable[[bytes], tuple[bytes, bytes]]
) -> None:
    site.start(3)
    site.settled()
    right = site.bundles()[0]
    site.set_bundles(*spoil(right))
    wait_for("the caBundle is right again", lambda: site.bundles() == [right, right])
    site.settled()


def test_somebody_who_spoils_it_again_and_again_is_named_and_not_fought_without_end(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    clock = Ahead()
    site.client.patch(hooks(site.namespace), {"metadata": {"labels": {"a": "b"}}}, MERGE_PATCH, fieldManager="gitops")
    (replica,) = site.start(clock=clock)
    site.settled()
    right = site.bundles()[0]

    def gave_up() -> bool:
        return 'gpu2dra_ca_bundle_patches_total{result="error"} 0.0' not in replica.metrics.render().decode()

    while not gave_up():
        site.set_bundles(b"", b"")
        wait_for("it is put right or left", lambda: site.bundles() == [right, right] or gave_up())
    assert 'gpu2dra_ca_bundle_patches_total{result="ok"} 5.0' in replica.metrics.render().decode()
    assert site.bundles() == [b"", b""]
    assert replica.certificates.problems()
    assert "was put right 5 times in a minute, waiting; others who write this object: gitops, helm." in caplog.text
    clock.seconds = 61
    replica.certificates.wake()
    wait_for("the caBundle is right again", lambda: site.bundles() == [right, right])


def test_a_configuration_may_come_later_and_go(bare_site: Site) -> None:
    site = bare_site
    site.start(2)
    wait_for("all have a leaf", lambda: not any(one.certificates.problems() for one in site.replicas))
    site.client.create(hooks(site.namespace), fieldManager="helm")
    wait_for("the caBundle is set", lambda: all(site.bundles()))
    site.settled()
    site.client.delete(hooks(site.namespace))
    for replica in site.replicas:
        replica.certificates.turn()
        assert replica.certificates.problems() == ()
    site.client.create(hooks(site.namespace), fieldManager="helm")
    wait_for("the caBundle is set again", lambda: all(site.bundles()))
    site.settled()


def secret(site: Site, certificates: bytes, keys: bytes, labels: Object) -> Object:
    data = {"ca.crt": certificates, "ca.key": keys}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "gpu2dra-ca", "namespace": site.namespace, "labels": labels},
        "data": {name: base64.b64encode(text).decode() for name, text in data.items()},
    }


OURS = {"app.kubernetes.io/managed-by": "gpu2dra"}
AUTHORITY = create(time.time(), 365 * DAY)
BROKEN = {
    "garbage": (b"garbage", AUTHORITY.key_pem, OURS, "is broken: the certificates cannot be read"),
    "garbage key": (AUTHORITY.pem, b"garbage", OURS, "is broken: the private keys cannot be read"),
    "another's key": (AUTHORITY.pem, create(time.time(), DAY).key_pem, OURS, "belongs to none of the certificates"),
    "somebody else's": (AUTHORITY.pem, AUTHORITY.key_pem, {}, "is not gpu2dra's"),
}


@pytest.mark.parametrize(("certificates", "keys", "labels", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_secret_that_cannot_be_used_is_left_alone_and_told(
    site: Site, certificates: bytes, keys: bytes, labels: Object, message: str
) -> None:
    before = site.client.create(secret(site, certificates, keys, labels))
    (replica,) = site.start()
    wait_for("it is told", lambda: message in " ".join(replica.certificates.problems()))
    replica.certificates.turn()
    assert site.secret() == before
    assert site.bundles() == [b"", b""]
    with pytest.raises(OSError, match="CERTIFICATE_UNKNOWN"):
        replica.verified_by(AUTHORITY.pem)
    site.client.delete(before)
    site.settled()


@pytest.mark.parametrize(("certificates", "keys", "labels", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_secret_that_is_spoiled_later_ends_no_service(
    site: Site, certificates: bytes, keys: bytes, labels: Object, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    (replica,) = site.start()
    site.settled()
    right = site.bundles()[0]
    spoiled = site.client.put(secret(site, certificates, keys, labels))
    replica.certificates.turn()
    assert message in caplog.text
    assert replica.certificates.problems() == ()
    site.set_bundles(b"", right)
    wait_for("what the leaf needs is put back all the same", lambda: site.bundles() == [right, right])
    assert site.secret() == spoiled
    replica.verified_by(right)


def test_an_empty_secret_of_ours_is_filled_and_keeps_what_else_it_has(site: Site) -> None:
    empty = secret(site, b"", b"", OURS)
    empty["metadata"]["annotations"] = {"example.com/owner": "platform"}
    site.client.create(empty)
    site.start(3)
    site.settled()
    assert site.secret()["metadata"]["annotations"] == {"example.com/owner": "platform"}
    assert len(certificates_of(stored(site.secret(), "ca.crt"))) == 1


def test_a_deleted_secret_means_rotate_now_and_breaks_nothing(site: Site) -> None:
    site.start(3)
    site.settled()
    right = site.bundles()[0]
    site.client.delete(site.secret())
    for replica in site.replicas:
        replica.certificates.wake()
    wait_for("the caBundle holds two", lambda: [len(certificates_of(one)) for one in site.bundles()] == [2, 2])
    assert certificates_of(right)[0] in certificates_of(stored(site.secret(), "ca.crt"))
    assert stored(site.secret(), "ca.key").count(b"BEGIN PRIVATE KEY") == 2
    site.settled()
    for replica in site.replicas:
        replica.verified_by(right)  # whoever has not heard of the change yet is served as before


def renewals(replica: Replica, bundle: bytes, count: int) -> None:
    """Wait until a replica has shown so many leaves to clients that trust a caBundle; each has to accept it."""
    seen: set[int] = set()

    def renewed() -> bool:
        with replica.connection(bundle) as client:
            seen.add(certificate_of(client).serial_number)
        return len(seen) >= count

    wait_for("the leaf is renewed", renewed)


def test_while_the_api_server_is_away_leaves_are_renewed_and_new_replicas_wait(site: Site) -> None:
    (replica,) = site.start(leaf_lifetime=3.0)
    site.settled()
    bundle = site.bundles()[0]
    site.plane.daemons.stop("kube-apiserver")
    (new,) = site.start()
    renewals(replica, bundle, 4)
    problem = "no valid certificate: GET .* the API server cannot be reached"
    wait_for("it says so", lambda: re.search(problem, " ".join(new.certificates.problems())))
    with pytest.raises(OSError, match="CERTIFICATE_UNKNOWN"):
        new.verified_by(bundle)
    site.plane.restart_api_server()
    site.settled()
    assert site.bundles() == [bundle, bundle]


def test_while_the_api_server_hangs_leaves_are_renewed(site: Site) -> None:
    (replica,) = site.start(leaf_lifetime=3.0)
    site.settled()
    bundle = site.bundles()[0]
    with site.plane.daemons.paused("kube-apiserver"):
        renewals(replica, bundle, 4)
    site.settled()
    assert site.bundles() == [bundle, bundle]


def test_a_replica_whose_clock_is_off_changes_nothing(site: Site) -> None:
    site.start(2)
    site.settled()
    before = site.secret()
    (wrong,) = site.start(clock=Ahead(400 * DAY))
    expected = r"The clock of this machine is \+34[0-9]{6} s from the API server's"
    wait_for("it says so", lambda: re.search(expected, " ".join(wrong.certificates.problems())))
    wrong.certificates.turn()
    assert site.secret() == before
    for replica in site.replicas[:2]:
        assert replica.certificates.problems() == ()


class ApiServers:
    """API servers that call the replicas all the time, and know a caBundle from up to some seconds ago.

    The real one learns of a new caBundle in milliseconds; these believe in whatever was stored in the last `behind`
    seconds. `states` are the numbers of certificates and keys that the Secret has held, one after the other.
    """

    def __init__(self, site: Site, behind: float) -> None:
        self.calls = 0
        self.refused: list[str] = []
        self.shown: set[int] = set()
        self.states: list[tuple[int, int]] = []
        self.keys: set[str] = set()
        self._site = site
        self._behind = behind
        self._bundles: list[tuple[float, bytes]] = []
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._look), threading.Thread(target=self._call)]

    def __enter__(self) -> Self:
        self._read()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join()

    def _look(self) -> None:
        while not self._ended.wait(0.02):
            self._read()

    def _read(self) -> None:
        first, second = self._site.bundles()
        if first != second:
            self.refused.append("two entries with two caBundles")
        if not self._bundles or self._bundles[-1][1] != first:
            self._bundles.append((time.monotonic(), first))
        held = self._site.secret()
        keys = stored(held, "ca.key").split(b"-----END PRIVATE KEY-----")[:-1]
        self.keys.update(key.split()[-2].decode() for key in keys)
        self.keys.add(held["data"]["ca.key"][100:200])
        state = len(certificates_of(stored(held, "ca.crt"))), len(keys)
        if self.states[-1:] != [state]:
            self.states.append(state)

    def _call(self) -> None:
        while not self._ended.wait(0.02):
            since = time.monotonic() - self._behind
            older = [one for one in self._bundles if one[0] <= since]
            believed = [*older[-1:], *(one for one in self._bundles if one[0] > since)]
            for replica, (at, bundle) in itertools.product(list(self._site.replicas), believed):
                self._call_one(replica, at, bundle)

    def _call_one(self, replica: Replica, at: float, bundle: bytes) -> None:
        self.calls += 1
        try:
            with replica.connection(bundle) as client:
                self.shown.add(certificate_of(client).serial_number)
        except OSError as error:
            self.refused.append(f"with the caBundle of {time.monotonic() - at:.2f} s ago: {error}")


@pytest.mark.slow
def test_a_rotation_is_seen_by_no_api_server_and_tells_no_key(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    chosen: dict[str, Any] = {"ca_lifetime": 24.0, "leaf_lifetime": 4.0}
    site.start(3, propagation=3.0, **chosen)
    site.settled()
    with ApiServers(site, behind=1.5) as servers, site.replicas[0].connection(site.bundles()[0]) as kept:

        def lives() -> bool:
            return echo(kept, b"hello") == b"hello"

        wait_for("the next authority is made", lambda: lives() and (2, 2) in servers.states)
        late = site.replica(propagation=3.0, **chosen)
        late.start()
        wait_for("a new replica is ready", lambda: not late.certificates.problems())
        site.replicas.append(late)
        wait_for("it is the only one", lambda: lives() and len(servers.states) > 1 and servers.states[-1] == (1, 1))
        assert lives()
    assert servers.refused == []
    assert servers.states == [(1, 1), (2, 2), (2, 1), (1, 1)]
    assert len(servers.shown) > 8  # leaves of all replicas, of both authorities, and renewed ones
    assert servers.calls > 100
    told = caplog.text
    assert "is added" in told
    assert "signs no more" in told
    assert "is removed" in told
    assert len(servers.keys) == 4  # of two keys a line of PEM, and a piece of what the Secret holds
    assert [key for key in servers.keys if key in told] == []
    assert "PRIVATE" not in told


def test_processes_that_start_at_once_agree_on_one_authority(own_control_plane: ControlPlane, tmp_path: Path) -> None:
    with installed(own_control_plane, {}, tmp_path) as installation, installation.replicas() as replicas:
        replicas.start(3)
        client = own_control_plane.client
        held = client.get("v1", "Secret", "gpu2dra-ca", NAMESPACE)
        hooks = client.get("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration", "zz-gpu2dra")
        bundles = [base64.b64decode(entry["clientConfig"]["caBundle"]) for entry in hooks["webhooks"]]
        assert bundles == [stored(held, "ca.crt")] * 2
        assert len(certificates_of(bundles[0])) == 1
        for replica in replicas.serving:
            with connected(("127.0.0.1", replica.port), trusting(bundles[0]), f"gpu2dra.{NAMESPACE}.svc"):
                pass
        client.delete(held)


def test_files_of_a_new_authority_wait_until_the_api_servers_trust_it(site: Site, tmp_path: Path) -> None:
    old, new = (foreign(time.time(), names=[f"gpu2dra.{site.namespace}.svc"]) for _ in range(2))
    folders = [tmp_path / "first", tmp_path / "second"]
    clock = Ahead()
    replicas = []
    for folder in folders:
        folder.mkdir()
        old.into(folder, ca=old.certificate)
        api = connect(site.plane.kubeconfig(USER))
        replicas.append(FromFiles(site.settings(certificate_dir=folder), Metrics(), api, clock))
    first, second = replicas
    first.turn()
    second.turn()
    assert site.bundles() == [old.certificate] * 2
    assert first.problems() == ()

    # The kubelets of two nodes exchange the files one after the other.
    new.into(folders[0], ca=new.certificate)
    first.turn()
    second.turn()
    assert [set(certificates_of(one)) for one in site.bundles()] == [
        set(certificates_of(old.certificate + new.certificate))
    ] * 2
    assert first.trust() == old.certificate
    clock.seconds = 299
    first.turn()
    assert first.trust() == old.certificate
    clock.seconds = 300
    first.turn()
    assert first.trust() == new.certificate
    assert second.trust() == old.certificate
    assert first.problems() == second.problems() == ()
    for replica in replicas:
        with serving(replica.ssl_context()) as address:
            served(address, site.bundles()[0], f"gpu2dra.{site.namespace}.svc")
