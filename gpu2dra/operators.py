"""What else must change with the limit, because an operator reads it out of its own object for something (R11).

Each rule works out what the operator would have read, from the object as it was. Where the operator has a field for
the same value, the value is written there; where it has none, the object must stay as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from gpu2dra.codes import finding
from gpu2dra.kinds import Kind, OperatorRule, matches
from gpu2dra.model import Access, Finding, Object, Operation
from gpu2dra.pointers import add, pointer, replace
from gpu2dra.quantity import AmountError, parse_quantity

Edits: TypeAlias = tuple[list[Operation], list[Finding]]


class _Subject(NamedTuple):
    """What a rule looks at: the object before the conversion and the containers that lose a limit, by path."""

    kind: Kind
    obj: Object
    access: Mapping[str, Access]


def operator_edits(kind: Kind, obj: Object, access: Sequence[Access]) -> Edits:
    """Return the operations that keep the operator of `kind` working without the limits that `access` takes off `obj`.

    `obj` is the object before the conversion; paths are pointers into it. DRA106 tells of each edit. A DRA315 says
    that the operator has no other field: the caller must not convert `obj` then, and the operations are empty.
    """
    if kind.operator is None:
        return [], []
    losing = {reached.path: reached for reached in access if reached.legacy}
    operations, findings = _RULES[kind.operator](_Subject(kind, obj, losing))
    blockers = [found for found in findings if found.code == "DRA315"]
    return ([], blockers) if blockers else (operations, findings)


# KubeRay: the limit of the Ray container (the first one) is handed to `ray start --num-gpus`, and Ray's autoscaler
# reads the same two fields. Sources: ray-operator/controllers/ray/common/pod.go (addWellKnownAcceleratorResources,
# updateRayStartParamsResources), utils/resources.go (IsGPUResourceKey; MIG names since 1.4.0), utils/validation.go
# (rayStartParams and the group's resources exclude each other since 1.5.0); ray
# python/ray/autoscaler/_private/kuberay/autoscaling_config.py (_get_num_gpus).
_RAY_GPU = re.compile(r"gpu\Z|nvidia\.com/mig-\d+g\.\d+gb\Z")


def _kuberay(subject: _Subject) -> Edits:
    operations: list[Operation] = []
    findings: list[Finding] = []
    for path, group in _ray_groups(subject):
        container = pointer(path, "template", "spec", "containers", 0)
        resources = _mapping(group.get("resources"))
        params = _mapping(group.get("rayStartParams"))
        told = "num-gpus" in params or any(_RAY_GPU.search(name.lower()) for name in resources)
        if told or container not in subject.access:
            continue
        limits = _mapping(_mapping(group["template"]["spec"]["containers"][0].get("resources")).get("limits"))
        # Of several GPU names KubeRay takes the first, in order of names, that is not zero.
        first = next((name for name in sorted(limits) if _RAY_GPU.search(name) and not _is_zero(limits[name])), None)
        amount = dict(subject.access[container].legacy).get(first or "")
        if amount is None:
            continue
        field, name = ("resources", "GPU") if resources else ("rayStartParams", "num-gpus")
        present = isinstance(group.get(field), dict)
        value = str(amount) if present else {name: str(amount)}
        operations.append(add(pointer(path, field, *([name] if present else [])), value))
        message = f"KubeRay and Ray's autoscaler take num-gpus from this limit; {field}.{name} now says {amount}."
        findings.append(finding("DRA106", container, message))
    return operations, findings


def _ray_groups(subject: _Subject) -> Iterator[tuple[str, Object]]:
    """Yield what holds each template: head and worker groups. A submitter pod starts no Ray node and has no group."""
    for pattern in subject.kind.templates:
        found = matches(subject.obj, pattern.removesuffix("/template"))
        yield from ((path, value) for path, value in found if isinstance(value, dict))


# Kubeflow Trainer: the limits of container `node`, in the Job `node` or the one labelled as the trainer step, give the
# processes per node unless the TrainJob says otherwise. Sources: pkg/runtime/runtime.go
# (ExtractResourcePerNodeFromRuntime; GetNumGPUPerNode: names that hold "gpu", so not MIG) and
# pkg/runtime/framework/plugins: torch and mpi since 2.1.0, xgboost and flux since 2.2.0. mlPolicy.torch.numProcPerNode
# exists up to 2.1.0 only.
_STEP_LABEL = "trainer.kubeflow.org/trainjob-ancestor-step"
_POLICY = "/spec/mlPolicy"


class _Node(NamedTuple):
    """The container that Trainer reads, what it loses, and the policy of the runtime."""

    path: str
    container: Object
    amount: int | str
    policy: Object


def _trainer(subject: _Subject) -> Edits:
    path, container = _trainer_node(subject.obj)
    legacy = subject.access[path].legacy if path in subject.access else ()
    amount = next((amount for name, amount in legacy if "gpu" in name.lower()), None)
    policies = _mapping(_mapping(subject.obj.get("spec")).get("mlPolicy"))
    rules = [(rule, policies[name]) for name, rule in _TRAINER.items() if isinstance(policies.get(name), dict)]
    if not legacy:
        return [], []
    # pkg/runtime (builder.go up to Trainer 2.2): resourcesPerNode takes the place of all resources of the container.
    note = finding(
        "DRA114", path,
        "A TrainJob that sets resourcesPerNode, even for CPU alone, takes the claims off this container; "
        "see to it that none does.",
    )  # fmt: skip
    if amount is None or not rules:
        return [], [note]
    rule, policy = rules[0]
    operations, findings = rule(_Node(path, container, amount, policy))
    return operations, [*findings, note]


def _torch(node: _Node) -> Edits:
    written = node.policy.get("numProcPerNode")
    if written == "auto":
        return _write_processes(node, "torch")
    # `gpu` is left to torchrun, which counts devices; a number needs nobody's help.
    if written is not None or node.amount == _cpus(node.container):
        return [], []
    message = (
        "Without this limit Trainer's torch policy starts one process per CPU, and since 2.2.0 a runtime cannot say "
        "how many. Keep the limit, or set spec.trainer.numProcPerNode in each TrainJob and move the limit by hand."
    )
    return [], [finding("DRA315", node.path, message)]


def _mpi(node: _Node) -> Edits:
    if node.policy.get("numProcPerNode", 1) not in (1, None) or node.amount == 1:
        return [], []
    return _write_processes(node, "mpi")


def _xgboost(node: _Node) -> Edits:
    if node.amount == 1:
        return [], []
    message = "Trainer's xgboost policy starts a worker per GPU of this limit and has no field for it. Keep the limit."
    return [], [finding("DRA315", node.path, message)]


def _flux(node: _Node) -> Edits:
    message = "Trainer's flux policy tells Flux the GPUs of this limit and has no field for them. Keep the limit."
    return [], [finding("DRA315", node.path, message)]


_TRAINER: Mapping[str, Callable[[_Node], Edits]] = {"torch": _torch, "mpi": _mpi, "xgboost": _xgboost, "flux": _flux}


def _write_processes(node: _Node, policy: str) -> Edits:
    field = f"mlPolicy.{policy}.numProcPerNode"
    if isinstance(node.amount, str):
        message = f"Trainer reads this limit, and {field} in its place takes numbers only. Write the amount as one."
        return [], [finding("DRA315", node.path, message)]
    edit = replace if "numProcPerNode" in node.policy else add
    message = f"Trainer reads the processes per node from this limit; {field} now says {node.amount}."
    return [edit(f"{_POLICY}/{policy}/numProcPerNode", node.amount)], [finding("DRA106", node.path, message)]


def _trainer_node(obj: Object) -> tuple[str, Object]:
    """Return path and value of the container whose resources Trainer reads; an empty path when there is none."""
    for path, job in matches(obj, "/spec/template/spec/replicatedJobs/*"):
        template = _mapping(_mapping(job).get("template"))
        labels = _mapping(_mapping(template.get("metadata")).get("labels"))
        if _mapping(job).get("name") != "node" and labels.get(_STEP_LABEL) != "trainer":
            continue
        for inner, container in matches(template, "/spec/template/spec/containers/*"):
            if _mapping(container).get("name") == "node" and container.get("resources") is not None:
                return f"{path}/template{inner}", container
    return "", {}


def _cpus(container: Object) -> int | None:
    """Return the processes that Trainer starts without a GPU: the CPUs requested, else the limit, at least one."""
    for field in ("requests", "limits"):
        try:
            quantity = parse_quantity(_mapping(_mapping(container.get("resources")).get(field)).get("cpu"))
        except AmountError:
            return None
        if quantity:
            return max(1, -(-quantity.numerator // quantity.denominator))
    return 1


# MPIJob v1: a launcher with a GPU limit is a worker too; without one its NVIDIA_* variables are emptied and it leaves
# the hostfile. No field says so. Source: training-operator pkg/controller.v1/mpi/mpijob.go (isGPULauncher: names that
# hold "gpu") and mpijob_controller.go. The mpi-operator (v2beta1) has spec.runLauncherAsWorker for it.
_LAUNCHER = "/spec/mpiReplicaSpecs/Launcher/template/spec/containers/"


def _mpi_job(subject: _Subject) -> Edits:
    if subject.obj.get("apiVersion") != "kubeflow.org/v1":
        return [], []
    message = (
        "Without this limit the operator takes the launcher out of the hostfile and hides GPUs from it. "
        "Keep the limit, or move to the MPI Operator (kubeflow.org/v2beta1) and its runLauncherAsWorker."
    )
    return [], [
        finding("DRA315", path, message)
        for path, reached in subject.access.items()
        if path.startswith(_LAUNCHER) and any("gpu" in name for name, _ in reached.legacy)
    ]


# With workerSpec KServe counts nodes by the limits of head and workers and writes limits of its own; an
# InferenceService may become a Knative Service (its chart's default), whose webhook refuses claims. Sources: in
# pkg/controller/v1beta1/inferenceservice computeRayNodeAndGPUs of components/predictor.go and
# reconcilers/deployment; deploymentMode in the values of charts/kserve-resources; issues kserve#5294 and
# knative/serving#15332.
_MODE = "serving.kserve.io/deploymentMode"
_STANDARD = ("Standard", "RawDeployment")


def _kserve(subject: _Subject) -> Edits:
    spec = _mapping(subject.obj.get("spec"))
    annotations = _mapping(_mapping(subject.obj.get("metadata")).get("annotations"))
    predictors = [spec.get("predictor"), *(found for _, found in matches(spec, "/canary/*/predictor"))]
    if any("workerSpec" in _mapping(found) for found in (spec, *predictors)):
        message = "With a workerSpec KServe counts nodes by these limits and sets limits of its own. Keep them."
    elif subject.kind.kind == "InferenceService" and annotations.get(_MODE) not in _STANDARD:
        message = (
            f"Without the annotation {_MODE}: Standard this may become a Knative Service, which refuses claims. If it "
            "runs in that mode, add the annotation (its value is RawDeployment before KServe 0.16) and convert again."
        )
    else:
        return [], []
    return [], [finding("DRA315", path, message) for path in subject.access]


_RULES: Mapping[OperatorRule, Callable[[_Subject], Edits]] = {
    OperatorRule.KUBERAY: _kuberay,
    OperatorRule.TRAINER: _trainer,
    OperatorRule.MPI_V1: _mpi_job,
    OperatorRule.KSERVE: _kserve,
}


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _is_zero(value: object) -> bool:
    try:
        return parse_quantity(value) == 0
    except AmountError:
        return False
