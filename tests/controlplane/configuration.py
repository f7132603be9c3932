"""What a test may choose about a control plane, and what its programs are given for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

# Who wrote what: bodies for Pods and claims, nothing for reads and for what the components tell each other.
_AUDIT_RULES: Sequence[Mapping[str, Any]] = (
    {"level": "None", "verbs": ["get", "list", "watch"]},
    {"level": "None", "resources": [{"group": "coordination.k8s.io"}, {"group": "events.k8s.io"}]},
    {"level": "RequestResponse", "resources": [{"group": "", "resources": ["pods"]}, {"group": "resource.k8s.io"}]},
    {"level": "Metadata"},
)


@dataclass(frozen=True, slots=True)
class Options:
    """What a test may want otherwise than by default."""

    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    admission_plugins: Sequence[str] = ()
    """Plugins that are off by default, as ExtendedResourceToleration."""
    runtime_config: Mapping[str, bool] = field(
        default_factory=lambda: {"resource.k8s.io/v1beta1": True, "resource.k8s.io/v1beta2": True}
    )
    """Served API versions; by default the old ones of DRA are served too, where the server still knows them."""
    max_backoff: int = 2
    """Seconds a pod that did not fit waits at most until it is tried again. Kubernetes' own default is 10."""
    audit: bool = True
    """Whether there is an audit log, which costs a trial of thousands of pods some of its time."""
    without_controllers: Sequence[str] = ()
    """Controllers that would only cost time, as resourceclaim-controller where no pod has to be scheduled."""
    audited_users: Sequence[str] = ()
    """Users of whom the audit log holds everything, reads too (as `system:serviceaccount:<namespace>:<name>`)."""
    filter_timeout: float = 10.0
    """Seconds that the scheduler looks for a pod's devices on one node; Kubernetes' own default, too."""


def audit_policy(options: Options) -> dict[str, object]:
    """Return what the API server writes down."""
    users = options.audited_users
    everything: Sequence[Mapping[str, Any]] = [{"level": "Metadata", "users": users}] if users else []
    rules = [*everything, *_AUDIT_RULES]
    return {"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"], "rules": rules}


def scheduler(options: Options, kubeconfig: Path) -> dict[str, object]:
    """Return the configuration of the scheduler."""
    # By name and alone: the plugin's other arguments keep their defaults.
    arguments = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "DynamicResourcesArgs",
        "filterTimeout": f"{options.filter_timeout}s",
    }
    allocation = {"name": "DynamicResources", "args": arguments}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 500, "burst": 1000},
        "leaderElection": {"leaderElect": False},
        "podInitialBackoffSeconds": 1,
        "podMaxBackoffSeconds": options.max_backoff,
        "profiles": [{"schedulerName": "default-scheduler", "pluginConfig": [allocation]}],
    }


def feature_gates(options: Options) -> dict[str, str | int | Path]:
    """Return the flag of all programs that sets feature gates, if any is set."""
    return {"--feature-gates": switches(options.feature_gates)} if options.feature_gates else {}


def switches(named: Mapping[str, bool]) -> str:
    """Return switches as the programs' flags take them."""
    return ",".join(f"{name}={str(on).lower()}" for name, on in named.items())
