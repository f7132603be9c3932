"""A control plane: etcd, kube-apiserver, kube-controller-manager and kube-scheduler on the loopback interface.

No kubelet runs: Nodes and ResourceSlices are what the tests write, and the scheduler allocates from them for real. What
differs from a cluster in the field is listed in the comments here; the rest are the programs' own defaults.
"""

from __future__ import annotations

import functools
import json
import shutil
import ssl
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self

import urllib3

from controlplane import configuration
from controlplane.client import Client, Object
from controlplane.configuration import Options
from controlplane.daemons import DaemonError, Daemons, free_port
from controlplane.pki import Authority, service_account_key
from controlplane.services import Services

if TYPE_CHECKING:
    from types import TracebackType

__all__ = ["ControlPlane", "Options"]

_ADMIN = ("gpu2dra-admin", ("system:masters",))
_STARTS = 3  # a free port may be taken before the API server listens on it: then once more, with another
_PORT_TAKEN = "address already in use"
# Without a kubelet there are no leases: this controller would taint every node after a minute.
_NO_CONTROLLER = "node-lifecycle-controller"
# It taints every new node NotReady, and counts on the controller above to take that off.
_NO_ADMISSION = "TaintNodesByCondition"


class ControlPlane:
    """One running control plane. Use it as a context manager, or call `start` and `stop`.

    `stop` leaves nothing behind; with `keep_logs` it leaves the folder `logs`. Children die with this process even
    when it is killed (Linux).
    """

    def __init__(self, binaries: Path, options: Options | None = None) -> None:
        self.binaries = binaries
        self.options = options or Options()
        self.folder = Path(tempfile.mkdtemp(prefix="gpu2dra-"))
        self.logs = self.folder / "logs"
        self.logs.mkdir()
        self.audit_log = self.logs / "audit.jsonl"
        self.daemons = Daemons(self.logs)
        self.services = Services(self.folder / "services.sock")
        self.server = ""
        self._server_command: list[str] = []
        self._authority = Authority(self._subfolder("pki"))
        self._clients: dict[tuple[str, tuple[str, ...]], Client] = {}

    def start(self) -> None:
        """Start all four and return when pods can be created; DaemonError (logs are kept) when that fails."""
        try:
            self.services.start()
            self._start_server()
            self._start_controllers()
        except BaseException as error:
            self.stop(keep_logs=not isinstance(error, KeyboardInterrupt))
            raise

    def stop(self, *, keep_logs: bool = False) -> None:
        """End all processes and remove what they wrote, logs excepted when asked."""
        self._forget_clients()
        self.daemons.stop()
        self.services.stop()
        for path in [self.folder] if not keep_logs else [path for path in self.folder.iterdir() if path != self.logs]:
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop(keep_logs=kind is not None)

    @property
    def client(self) -> Client:
        """A client with all rights."""
        return self.client_as(*_ADMIN)

    def client_as(self, user: str, groups: Sequence[str] = ()) -> Client:
        """Return a client that acts as a user in these groups, with the rights that RBAC gives them."""
        key = user, tuple(groups)
        if key not in self._clients:
            self._clients[key] = Client(self.server, self._authority.certificate, *self._authority.client(user, groups))
        return self._clients[key]

    def admin_context(self) -> ssl.SSLContext:
        """Return what a client of another kind needs to talk to the API server with all rights."""
        context = ssl.create_default_context(cafile=self._authority.certificate)
        context.load_cert_chain(*self._authority.client(*_ADMIN))
        return context

    @property
    def certificate_authority(self) -> Path:
        """The certificate that the API server's own is signed with."""
        return self._authority.certificate

    def serving_certificate(self, name: str, hosts: Sequence[str]) -> tuple[Path, Path]:
        """Write a certificate of that authority for a server of the tests' own; return it and its key."""
        return self._authority.server(name, hosts)

    def kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """Write a kubeconfig for a user and return its path."""
        return self._authority.kubeconfig(self.server, user, groups)

    @functools.cached_property
    def admin_kubeconfig(self) -> Path:
        """A kubeconfig with all rights."""
        return self.kubeconfig(*_ADMIN)

    def token(self, namespace: str, service_account: str) -> str:
        """Return a token of a service account, as the kubelet mounts it; ApiError when there is no such account."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{service_account}/token"
        made = self.client.call("POST", path, {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"})
        return str(made.checked()["status"]["token"])

    def service_account_kubeconfig(self, namespace: str, service_account: str) -> Path:
        """Write a kubeconfig with a token of a service account and return its path."""
        user = f"system:serviceaccount:{namespace}:{service_account}"
        return self._authority.token_kubeconfig(self.server, user, self.token(namespace, service_account))

    def audit_events(self, user: str | None = None) -> list[Object]:
        """Return what was written through the API so far, oldest first; complete up to the last answered request.

        With a user that `audited_users` names: everything that this user sent.
        """
        with self.audit_log.open() as lines:
            events = [json.loads(line) for line in lines if line.endswith("\n")]
        return [event for event in events if user in (None, event["user"]["username"])]

    def restart_api_server(self) -> None:
        """Stop the API server, start it again at the same port, and return when it is ready.

        Not to be called from a thread that ends before the test does: the server would end with it (see `leash`).
        """
        self.daemons.stop("kube-apiserver")
        self.daemons.start("kube-apiserver", self._server_command)
        self.daemons.wait_until("kube-apiserver is ready again", self._ready)

    def pause_etcd(self, seconds: float) -> None:
        """Have etcd, and so every write, stand still for some time; returns after it."""
        with self.daemons.paused("etcd"):
            time.sleep(seconds)

    def _start_server(self) -> None:
        # Sockets instead of ports; the addresses for other members have to look like addresses, and nobody calls them.
        etcd = f"unix://{self.folder / 'etcd.sock'}"
        nowhere = "http://127.0.0.1:1"
        flags: dict[str, str | int | Path] = {
            "--name": "test",
            "--data-dir": self._subfolder("etcd"),
            "--listen-client-urls": etcd,
            "--advertise-client-urls": nowhere,
            "--listen-peer-urls": f"unix://{self.folder / 'peer.sock'}",
            "--initial-advertise-peer-urls": nowhere,
            "--initial-cluster": f"test={nowhere}",
            "--unsafe-no-fsync": "true",  # nothing has to survive a power cut
            "--log-level": "warn",
        }
        self.daemons.start("etcd", _command(self.binaries / "etcd", flags))
        serving = self._authority.server("kube-apiserver", ["127.0.0.1", "localhost", "kubernetes.default.svc"])
        signing = service_account_key(self.folder / "pki")
        for attempt in range(1, _STARTS + 1):
            port = free_port()
            self.server = f"https://127.0.0.1:{port}"
            self._server_command = self._flags_of_server(etcd, port, serving, signing)
            self.daemons.start("kube-apiserver", self._server_command)
            try:
                self.daemons.wait_until("kube-apiserver is ready", self._ready)
            except DaemonError:
                if attempt == _STARTS or _PORT_TAKEN not in self.daemons.tail("kube-apiserver"):
                    raise
                self.daemons.stop("kube-apiserver")
                self._forget_clients()
            else:
                return

    def _flags_of_server(self, etcd: str, port: int, serving: tuple[Path, Path], signing: Path) -> list[str]:
        policy = self.folder / "audit-policy.json"
        policy.write_text(json.dumps(configuration.audit_policy(self.options)))
        egress = self.folder / "egress-selector.json"
        egress.write_text(json.dumps(self.services.egress_selector()))
        flags: dict[str, str | int | Path] = {
            "--etcd-servers": etcd,
            "--bind-address": "127.0.0.1",
            "--advertise-address": "127.0.0.1",
            "--endpoint-reconciler-type": "none",  # Endpoints may not hold a loopback address
            "--secure-port": port,
            "--tls-cert-file": serving[0],
            "--tls-private-key-file": serving[1],
            "--client-ca-file": self._authority.certificate,
            "--authorization-mode": "RBAC",
            "--service-account-issuer": "https://kubernetes.default.svc",
            "--service-account-key-file": signing,
            "--service-account-signing-key-file": signing,
            "--service-cluster-ip-range": "10.0.0.0/24",
            "--allow-privileged": "true",
            "--disable-admission-plugins": _NO_ADMISSION,
            "--egress-selector-config-file": egress,  # Services are reached through a stand-in for kube-proxy
        }
        if self.options.audit:
            flags["--audit-policy-file"] = policy
            flags["--audit-log-path"] = self.audit_log
            flags["--audit-log-mode"] = "blocking"  # an answered request is in the log
        if self.options.admission_plugins:
            flags["--enable-admission-plugins"] = ",".join(self.options.admission_plugins)
        if self.options.runtime_config:
            flags["--runtime-config"] = configuration.switches(self.options.runtime_config)
        return _command(self.binaries / "kube-apiserver", flags | configuration.feature_gates(self.options))

    def _start_controllers(self) -> None:
        manager: dict[str, str | int | Path] = {
            "--kubeconfig": self.kubeconfig("system:kube-controller-manager", ()),
            "--controllers": ",-".join(["*", _NO_CONTROLLER, *self.options.without_controllers]),
            "--use-service-account-credentials": "true",
            "--service-account-private-key-file": self.folder / "pki" / "service-account.key",
            "--root-ca-file": self._authority.certificate,
            "--leader-elect": "false",
            "--secure-port": 0,
            "--kube-api-qps": 500,
            "--kube-api-burst": 1000,
        }
        manager |= configuration.feature_gates(self.options)
        self.daemons.start("kube-controller-manager", _command(self.binaries / "kube-controller-manager", manager))
        kubeconfig = self.kubeconfig("system:kube-scheduler", ())
        file = self.folder / "scheduler.json"
        file.write_text(json.dumps(configuration.scheduler(self.options, kubeconfig)))
        scheduler: dict[str, str | int | Path] = {"--config": file, "--secure-port": 0}
        scheduler |= configuration.feature_gates(self.options)
        self.daemons.start("kube-scheduler", _command(self.binaries / "kube-scheduler", scheduler))
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        ready = "kube-controller-manager makes service accounts"
        self.daemons.wait_until(ready, lambda: self.client.call("GET", account).accepted)

    def _forget_clients(self) -> None:
        for client in self._clients.values():
            client.close()
        self._clients.clear()

    def _ready(self) -> bool:
        try:
            return self.client.call("GET", "/readyz").accepted
        except urllib3.exceptions.HTTPError:  # nobody listens yet
            return False

    def _subfolder(self, name: str) -> Path:
        folder = self.folder / name
        folder.mkdir(mode=0o700)
        return folder


def _command(program: Path, flags: Mapping[str, str | int | Path]) -> list[str]:
    return [str(program), *(f"{flag}={value}" for flag, value in flags.items())]
