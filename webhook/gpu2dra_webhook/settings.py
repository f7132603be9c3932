"""Everything that can be chosen about the webhook, as one frozen value that all other parts are built from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from pathlib import Path

NamespaceMode = Literal["opt-in", "opt-out"]
OnApiFailure = Literal["deny", "allow"]
QuotaChoice = Literal["leave", "convert"]
CertificateSource = Literal["self", "files"]
StoreKind = Literal["cluster", "memory"]
LogFormat = Literal["json", "text"]
LogLevel = Literal["debug", "info", "warning", "error"]

MEBIBYTE = 2**20
ANY_ADDRESS = "::"
"""Every address of the machine, IPv4 or IPv6, whichever it has."""


class SettingsError(Exception):
    """A choice that the webhook cannot start with; the message says what to do about it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All choices, with the defaults that the command line documents. Times are seconds, sizes are bytes."""

    # Where it listens.
    bind_address: str = ANY_ADDRESS  # a pod is reached by its address; the NetworkPolicy says by whom
    port: int = 9443
    metrics_port: int = 8080

    # Who it is in the cluster.
    namespace: str = "gpu2dra-system"
    pod_name: str = "gpu2dra"
    service_name: str = "gpu2dra"
    webhook_configuration: str = "zz-gpu2dra"
    kubeconfig: Path | None = None

    # What it converts.
    namespace_mode: NamespaceMode = "opt-in"
    excluded_namespaces: frozenset[str] = frozenset()
    policy_file: Path | None = None
    quota: QuotaChoice = "leave"
    allow_mixed_nodes: bool = False
    drivers: tuple[str, ...] = ("gpu.nvidia.com",)

    # Templates, and what happens when they cannot be made.
    store: StoreKind = "cluster"
    on_api_failure: OnApiFailure = "deny"
    max_templates_per_namespace: int = 200
    template_grace: float = 86_400
    janitor: bool = True

    # Certificates.
    certificates: CertificateSource = "self"
    certificate_dir: Path | None = None
    manage_ca_bundle: bool = True
    ca_lifetime: float = 365 * 86_400
    leaf_lifetime: float = 86_400
    server_names: tuple[str, ...] = ()
    client_ca_file: Path | None = None
    client_names: tuple[str, ...] = ()

    # Limits that no client can talk its way around.
    body_limit: int = 7 * MEBIBYTE
    max_connections: int = 4096
    handshake_timeout: float = 5
    header_timeout: float = 10
    body_timeout: float = 10
    idle_timeout: float = 95
    drain_seconds: float = 95

    # What it tells.
    log_level: LogLevel = "info"
    log_format: LogFormat = "json"
