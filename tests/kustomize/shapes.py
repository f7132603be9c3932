"""Trees of kustomizations as users have them, and what their workloads get in the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from textwrap import dedent, indent


@dataclass(frozen=True)
class Shape:
    """`gets` holds, per kustomization, what its workloads get; `changed` the files that change or are new."""

    files: dict[str, str]
    gets: dict[str, list[str]]
    changed: set[str] = field(default_factory=set)


def workload(amount: object = 1, *, kind: str = "Deployment", name: str = "vllm", more: str = "") -> str:
    """Return a workload with one container that asks for GPUs, or (None) for none."""
    api = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "Job": "batch/v1"}[kind]
    asks = "" if amount is None else f"{{limits: {{nvidia.com/gpu: {amount}}}}}"
    lines = [
        f"apiVersion: {api}", f"kind: {kind}", f"metadata: {{name: {name}, labels: {{app: {name}}}}}", "spec:",
        "  template:", "    spec:", "      containers:", "      - name: server", "        image: vllm",
    ]  # fmt: skip
    lines += [f"        resources: {asks}"] if asks else []
    return "\n".join(lines) + "\n" + indent(dedent(more), "      ")


def merge(amount: object, *, kind: str = "Deployment", name: str = "vllm", key: str = "nvidia.com/gpu") -> str:
    """Return a strategic-merge patch of the request."""
    return workload(amount, kind=kind, name=name).replace("        image: vllm\n", "").replace("nvidia.com/gpu", key)


def inline(text: str, head: str = "- patch: |-") -> str:
    """Return a patch inside a kustomization."""
    return f"{head}\n" + indent(text, "    ")


LIMIT = "/spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu"
TARGET = "  target: {kind: Deployment, name: vllm}\n"
BASE = {"base/kustomization.yaml": "resources:\n- deploy.yaml\n", "base/deploy.yaml": workload()}
EMPTY = {"base/kustomization.yaml": "resources:\n- deploy.yaml\n", "base/deploy.yaml": workload(None)}
TEMPLATES, NAMES = "resourceclaimtemplates.yaml", "kustomizeconfig-resourceclaims.yaml"
ONE, FOUR = ["Deployment/vllm server 1"], ["Deployment/vllm server 4"]
CHANGED = {"base/deploy.yaml", "over/kustomization.yaml", f"over/{TEMPLATES}"}


def over(text: str, **files: str) -> dict[str, str]:
    """Return an overlay `over` on `base`; `files` by the stem of their name."""
    return {"over/kustomization.yaml": "resources:\n- ../base\n" + text} | {
        f"over/{name}.yaml": content for name, content in files.items()
    }


def patched(text: str, **files: str) -> Shape:
    """Return a base with one GPU under an overlay that makes it four."""
    own = {f"over/{name}.yaml" for name in files}
    return Shape({**BASE, **over(text, **files)}, {"base": ONE, "over": FOUR}, CHANGED | own)


def brought(text: str, **files: str) -> Shape:
    """Return a base without a GPU under an overlay that brings four."""
    own = {f"over/{name}.yaml" for name in files}
    return Shape({**EMPTY, **over(text, **files)}, {"base": [], "over": FOUR}, (CHANGED | own) - {"base/deploy.yaml"})


def removed(text: str, **files: str) -> Shape:
    """Return a base with one GPU under an overlay that takes it away."""
    changed = {"base/deploy.yaml", *(f"over/{name}.yaml" for name in files)}
    return Shape({**BASE, **over(text, **files)}, {"base": ONE, "over": []}, changed)


def op(operation: str, value: object = None, path: str = LIMIT) -> str:
    """Return a list of one JSON6902 operation."""
    return f"- op: {operation}\n  path: {path}\n" + ("" if value is None else f"  value: {value}\n")


SECOND = """\
      - name: side
        image: side
        resources: {limits: {nvidia.com/gpu: 2}}
"""
SIDE = "{name: side, image: s, resources: {limits: {nvidia.com/gpu: 2}}}"
LIST = "apiVersion: v1\nkind: List\nitems:\n" + "".join(
    indent(workload(name=name), "  ").replace("  ", "- ", 1) for name in ("one", "two")
)
RAY = """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: ray}
spec:
  headGroupSpec:
    rayStartParams: {}
    template: {spec: {containers: [{name: head, image: ray}]}}
  workerGroupSpecs:
  - groupName: gpu
    rayStartParams: {}
    template:
      spec:
        containers:
        - name: worker
          image: ray
          resources:
            limits:
              nvidia.com/gpu: 1
"""
RAY_LIMIT = "/spec/workerGroupSpecs/0/template/spec/containers/0/resources/limits/nvidia.com~1gpu"
MODEL = """\
apiVersion: serving.kserve.io/v1beta1
kind: InferenceService
metadata: {name: m, annotations: {serving.kserve.io/deploymentMode: RawDeployment}}
spec:
  predictor:
    containers:
    - name: kserve-container
      image: m
      resources:
        limits:
          nvidia.com/gpu: 1
"""
MODEL_LIMIT = "/spec/predictor/containers/0/resources/limits/nvidia.com~1gpu"
TWO = {
    "base/kustomization.yaml": "resources:\n- one.yaml\n- two.yaml\n",
    "base/one.yaml": workload(name="one"),
    "base/two.yaml": workload(name="two"),
}
COMPONENT = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n"
REPLACED = """\
configMapGenerator:
- name: settings
  literals: [namespace=prod]
replacements:
- source: {kind: ConfigMap, name: settings, fieldPath: data.namespace}
  targets:
  - select: {kind: Deployment}
    fieldPaths: [metadata.namespace]
"""
PLACED = workload().replace("{name: vllm,", "{name: vllm, namespace: placeholder,")

SHAPES: dict[str, Shape] = {
    "nothing-patched": Shape(
        {**BASE, **over("namespace: prod\ncommonLabels: {team: a}\nimages:\n- {name: vllm, newTag: v2}\n")},
        {"base": ONE, "over": ONE},
        {"base/deploy.yaml"},
    ),
    "prefix": Shape(
        {**BASE, **over("namePrefix: a-\nnameSuffix: -b\n")},
        {"base": ONE, "over": ["Deployment/a-vllm-b server 1"]},
        {"base/deploy.yaml", "base/kustomization.yaml", f"base/{NAMES}"},
    ),
    "two-prefixes": Shape(
        {**BASE, **over("namePrefix: a-\n"), "top/kustomization.yaml": "resources: [../over]\nnamePrefix: b-\n"},
        {"base": ONE, "over": ["Deployment/a-vllm server 1"], "top": ["Deployment/b-a-vllm server 1"]},
        {"base/deploy.yaml", "base/kustomization.yaml", f"base/{NAMES}"},
    ),
    "same-base-twice": Shape(
        {
            **BASE,
            "a/kustomization.yaml": "resources: [../base]\nnamePrefix: a-\n",
            "b/kustomization.yaml": "resources: [../base]\nnamePrefix: b-\n",
            "top/kustomization.yaml": "resources: [../a, ../b]\n",
        },
        {"top": ["Deployment/a-vllm server 1", "Deployment/b-vllm server 1"]},
        {"base/deploy.yaml", "base/kustomization.yaml", f"base/{NAMES}"},
    ),
    "merge-file": patched("patches:\n- path: p.yaml\n", p=merge(4)),
    "merge-file-of-two-documents": patched("patches:\n- path: p.yaml\n", p=merge(4) + "---\n" + merge(None)),
    "merge-inline": patched("patches:\n" + inline(merge(4))),
    "merge-with-target": patched("patches:\n- path: p.yaml\n" + TARGET, p=merge(4, name="any")),
    "merge-deprecated": patched("patchesStrategicMerge:\n- p.yaml\n", p=merge(4)),
    "merge-deprecated-inline": patched("patchesStrategicMerge:\n" + inline(merge(4), "- |-")),
    "operations-file": patched("patches:\n- path: p.yaml\n" + TARGET, p=op("replace", 4)),
    "operations-inline": patched("patches:\n" + inline(op("replace", 4)) + TARGET),
    "operations-target-first": patched("patches:\n-" + TARGET[1:] + inline(op("replace", '"4"'), "  patch: |-")),
    "operations-flow": patched("patches:\n" + inline(f"- {{op: replace, path: {LIMIT}, value: 4}}\n") + TARGET),
    "operations-deprecated": patched("patchesJson6902:\n- path: p.yaml\n" + TARGET, p=op("replace", 4)),
    "operations-beside-others": patched(
        "patches:\n- path: p.yaml\n" + TARGET,
        p=op("add", 3, "/spec/replicas") + op("replace", 4) + op("add", "x", "/metadata/labels/more"),
    ),
    "operations-from-a-parent": patched(
        "patches:\n- path: p.yaml\n" + TARGET,
        p=op("replace", "{nvidia.com/gpu: 4, memory: 8Gi}", LIMIT.rpartition("/")[0]),
    ),
    "renamed-by-another-patch": Shape(
        {**BASE, **over("patches:\n- path: p.yaml\n" + inline(op("replace", "prod", "/metadata/name")) + TARGET,
                        p=merge(4))},
        {"base": ONE, "over": ["Deployment/prod server 4"]},
        CHANGED | {"over/p.yaml"},
    ),
    "brought-by-merge": brought("patches:\n- path: p.yaml\n", p=merge(4)),
    "brought-by-merge-inline": brought("patches:\n" + inline(merge(4))),
    "brought-by-operations": brought(
        "patches:\n" + inline(op("add", "{limits: {nvidia.com/gpu: 4}}", LIMIT.rpartition("/limits")[0])) + TARGET
    ),
    "same-amount-again": Shape(
        {**BASE, **over("patches:\n- path: p.yaml\n", p=merge(1))},
        {"base": ONE, "over": ONE},
        {"base/deploy.yaml", "over/p.yaml"},
    ),
    "same-amount-by-operations": Shape(
        {**BASE, **over("patches:\n- path: p.yaml\n" + TARGET, p=op("replace", 1))},
        {"base": ONE, "over": ONE},
        {"base/deploy.yaml", "over/p.yaml"},
    ),
    "another-name": Shape(
        {**BASE, **over("patches:\n- path: p.yaml\n", p=merge("null, nvidia.com/mig-1g.5gb: 2"))},
        {"base": ONE, "over": ["Deployment/vllm server 2"]},
        CHANGED | {"over/p.yaml"},
    ),
    "two-amounts": Shape(
        {
            **BASE, **over("patches:\n- path: p.yaml\n", p=merge(4)),
            "top/kustomization.yaml": "resources: [../over]\nnameSuffix: -x\npatches:\n- path: p.yaml\n",
            "top/p.yaml": merge(8),
        },
        {"base": ONE, "over": FOUR, "top": ["Deployment/vllm-x server 8"]},
    ),
    "component": Shape(
        {
            **BASE, **over("components: [../big]\n"),
            "big/kustomization.yaml": COMPONENT + "patches:\n- path: p.yaml\n", "big/p.yaml": merge(4),
            "other/kustomization.yaml": "resources: [../base]\ncomponents: [../big]\nnamespace: ns\n",
        },
        {"base": ONE, "over": FOUR, "other": FOUR},
        {"base/deploy.yaml", "big/kustomization.yaml", "big/p.yaml", f"big/{TEMPLATES}"},
    ),
    "component-with-prefix": Shape(
        {
            **BASE, **over("components: [../big]\nnamePrefix: o-\n"),
            "big/kustomization.yaml": COMPONENT + "namePrefix: c-\npatches:\n- path: p.yaml\n", "big/p.yaml": merge(4),
        },
        {"base": ONE, "over": ["Deployment/o-c-vllm server 4"]},
    ),
    "removed-by-null": removed("patches:\n- path: p.yaml\n", p=merge("null")),
    "removed-by-operation": removed("patches:\n- path: p.yaml\n" + TARGET, p=op("remove")),
    "removed-container": Shape(
        {
            **BASE, "base/deploy.yaml": workload() + SECOND,
            **over("patches:\n- path: p.yaml\n",
                   p=merge(None).replace("- name: server", "- {name: side, $patch: delete}")),
        },
        {"base": ["Deployment/vllm server 1", "Deployment/vllm side 2"], "over": ONE},
    ),
    "removed-workload": Shape(
        {**BASE, **over("patches:\n- path: p.yaml\n",
                        p="$patch: delete\napiVersion: apps/v1\nkind: Deployment\nmetadata: {name: vllm}\n")},
        {"base": ONE, "over": []},
        {"base/deploy.yaml"},
    ),
    "zero": removed("patches:\n- path: p.yaml\n", p=merge(0)),
    "zero-by-operation": removed("patches:\n- path: p.yaml\n" + TARGET, p=op("replace", 0)),
    "zero-over-nothing": Shape(
        {**EMPTY, "base/two.yaml": workload(name="two"), **over("patches:\n- path: p.yaml\n", p=merge(0)),
         "base/kustomization.yaml": "resources: [deploy.yaml, two.yaml]\n"},
        {"over": ["Deployment/two server 1"]},
        {"base/two.yaml"},
    ),
    "new-container": Shape(
        {**BASE, **over("patches:\n" + inline(op("add", SIDE, LIMIT.partition("/0/")[0] + "/-")) + TARGET)},
        {"base": ONE, "over": ["Deployment/vllm server 1", "Deployment/vllm side 2"]},
    ),
    "new-container-by-merge": Shape(
        {**BASE, **over("patches:\n- path: p.yaml\n", p=merge(None).partition("      - name")[0] + SECOND)},
        {"base": ONE, "over": ["Deployment/vllm server 1", "Deployment/vllm side 2"]},
    ),
    "same-base-twice-and-patched": Shape(
        {
            **BASE,
            "a/kustomization.yaml": "resources: [../base]\nnamePrefix: a-\npatches: [{path: p.yaml}]\n",
            "b/kustomization.yaml": "resources: [../base]\nnamePrefix: b-\npatches: [{path: p.yaml}]\n",
            "a/p.yaml": merge(4), "b/p.yaml": merge(4),
            "top/kustomization.yaml": "resources: [../a, ../b]\nnameSuffix: -x\n",
        },
        {"top": ["Deployment/a-vllm-x server 4", "Deployment/b-vllm-x server 4"]},
    ),
    "two-namespaces": Shape(
        {
            **BASE,
            "a/kustomization.yaml": "resources: [../base]\nnamespace: one\npatches: [{path: p.yaml}]\n",
            "b/kustomization.yaml": "resources: [../base]\nnamespace: two\n", "a/p.yaml": merge(4),
            "top/kustomization.yaml": "resources: [../a, ../b]\n",
        },
        {"top": ["Deployment/vllm server 1", "Deployment/vllm server 4"]},
    ),
    "inference-service": Shape(
        {"base/kustomization.yaml": "resources: [model.yaml]\n", "base/model.yaml": MODEL,
         **over("nameSuffix: -x\npatches:\n" + inline(op("replace", 2, MODEL_LIMIT))
                + "  target: {kind: InferenceService}\n")},
        {"base": ["InferenceService/m kserve-container 1"], "over": ["InferenceService/m-x kserve-container 2"]},
    ),
    "list": Shape(
        {"base/kustomization.yaml": "resources: [all.yaml]\n", "base/all.yaml": LIST,
         **over("patches:\n- path: p.yaml\n", p=merge(4, name="two"))},
        {"base": ["Deployment/one server 1", "Deployment/two server 1"],
         "over": ["Deployment/one server 1", "Deployment/two server 4"]},
    ),
    "several-objects": Shape(
        {**TWO, **over("patches:\n- path: p.yaml\n  target: {kind: Deployment}\n", p=op("replace", 4))},
        {"over": ["Deployment/one server 4", "Deployment/two server 4"]},
        {"base/one.yaml", "base/two.yaml", "over/kustomization.yaml", f"over/{TEMPLATES}", "over/p.yaml"},
    ),
    "several-objects-with-other-containers": Shape(
        {**TWO, "base/two.yaml": workload(name="two").replace("server", "main"),
         **over("patches:\n- path: p.yaml\n  target: {kind: Deployment}\n",
                p=op("replace", 4) + op("add", 2, "/spec/replicas"))},
        {"over": ["Deployment/one server 4", "Deployment/two main 4"]},
    ),
    "one-container-of-two": Shape(
        {**BASE, "base/deploy.yaml": workload() + SECOND, **over("patches:\n- path: p.yaml\n", p=merge(4))},
        {"over": ["Deployment/vllm server 4", "Deployment/vllm side 2"]},
    ),
    "init-container-shares": Shape(
        {
            **BASE,
            "base/deploy.yaml": workload(more="""\
                initContainers:
                - name: load
                  image: load
                  resources: {limits: {nvidia.com/gpu: 2}}
                """),
            **over("patches:\n- path: p.yaml\n", p=merge(4)),
        },
        {},
    ),
    "tolerations-replaced": Shape(
        {**BASE, **over("patches:\n- path: p.yaml\n",
                        p=merge(None).partition("      containers")[0]
                        + "      tolerations: [{key: dedicated, operator: Exists}]\n")},
        {"base": ONE, "over": ONE},
    ),
    "tolerations-replaced-by-a-later-patch": Shape(
        {**BASE, **over("patches:\n- path: p.yaml\n- path: q.yaml\n" + TARGET, p=merge(4),
                        q=op("add", "[{key: z, operator: Exists}]", "/spec/template/spec/tolerations"))},
        {"base": ONE, "over": FOUR},
    ),
    "containers-replaced": Shape(
        {**BASE, **over("patches:\n" + inline(op("replace", "[{name: other, image: x}]", LIMIT.partition("/0/")[0]))
                        + TARGET)},
        {"base": ONE, "over": []},
    ),
    "namespace-replaced": Shape(
        {"base/kustomization.yaml": "resources: [deploy.yaml]\n", "base/deploy.yaml": PLACED,
         **over(REPLACED + "nameSuffix: -x\n")},
        {"base": ONE, "over": ["Deployment/vllm-x server 1"]},
    ),
    "namespace-replaced-and-patched": Shape(
        {"base/kustomization.yaml": "resources: [deploy.yaml]\n", "base/deploy.yaml": PLACED,
         **over(REPLACED + "nameSuffix: -x\npatches:\n- path: p.yaml\n",
                p=merge(4).replace("{name: vllm,", "{name: vllm, namespace: placeholder,"))},
        {"base": ONE, "over": ["Deployment/vllm-x server 4"]},
    ),
    "ray": Shape(
        {"base/kustomization.yaml": "resources: [ray.yaml]\n", "base/ray.yaml": RAY,
         **over("namePrefix: a-\npatches:\n- path: p.yaml\n  target: {kind: RayCluster}\n",
                p=op("replace", 4, RAY_LIMIT))},
        {"base": ["RayCluster/ray worker 1"], "over": ["RayCluster/a-ray worker 4"]},
    ),
    "ray-by-merge": Shape(
        {"base/kustomization.yaml": "resources: [ray.yaml]\n", "base/ray.yaml": RAY,
         **over("patches:\n- path: p.yaml\n", p=RAY.replace("gpu: 1", "gpu: 4"))},
        {"base": ["RayCluster/ray worker 1"], "over": ["RayCluster/ray worker 4"]},
    ),
    "windows-line-breaks": Shape(
        {name: text.replace("\n", "\r\n")
         for name, text in patched("namePrefix: a-\npatches:\n" + inline(merge(4))).files.items()},
        {"base": ONE, "over": ["Deployment/a-vllm server 4"]},
    ),
    "flow-lists": Shape(
        {**BASE, "base/kustomization.yaml": "resources: [deploy.yaml]\n",
         "over/kustomization.yaml": "resources: [../base]  # the base\nnamePrefix: a-\npatches: [{path: p.yaml}]\n",
         "over/p.yaml": merge(4)},
        {"base": ONE, "over": ["Deployment/a-vllm server 4"]},
    ),
    "json": Shape(
        {**BASE, "over/kustomization.yaml": '{"resources": ["../base"],\n "patches": [{"path": "p.json"}]}\n',
         "over/p.json": '{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "vllm"},\n "spec": '
         '{"template": {"spec": {"containers": [\n  {"name": "server", "resources": {"limits": '
         '{"nvidia.com/gpu": 4}}}]}}}}\n'},
        {"base": ONE, "over": FOUR},
    ),
    "odd-indents": Shape(
        {**BASE, "over/kustomization.yml": "resources:\n    -   ../base\npatches:\n    -   patch: |\n"
         + indent(merge(4), " " * 14) + "\n\n# the end\n"},
        {"base": ONE, "over": FOUR},
    ),
    "deprecated-bases": Shape(
        {**BASE, "over/kustomization.yaml": "bases:\n- ../base\npatchesStrategicMerge:\n- p.yaml\n",
         "over/p.yaml": merge(4)},
        {"base": ONE, "over": FOUR},
        CHANGED | {"over/p.yaml"},
    ),
    "other-kinds": Shape(
        {"base/kustomization.yaml": "resources: [all.yaml]\nnamePrefix: p-\n",
         "base/all.yaml": workload(kind="Job", name="a") + "---\n" + workload(kind="StatefulSet", name="b"),
         **over("patches:\n- path: p.yaml\n", p=merge(4, kind="Job", name="a"))},
        {"base": ["Job/p-a server 1", "StatefulSet/p-b server 1"],
         "over": ["Job/p-a server 4", "StatefulSet/p-b server 1"]},
    ),
    "json-of-operations": Shape(
        {**BASE, **over("patches:\n- path: p.json\n" + TARGET),
         "over/p.json": f'[\n  {{"op": "replace", "path": "{LIMIT}", "value": "4"}},\n'
         '  {"op": "add", "path": "/spec/replicas", "value": 3}\n]\n'},
        {"over": FOUR}, CHANGED | {"over/p.json"},
    ),
    "resource-in-json": Shape(
        {"base/kustomization.yaml": "resources:\n- pod.json\n",
         "base/pod.json": '{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers":'
         ' [{"name": "c", "image": "i", "resources": {"limits": {"nvidia.com/gpu": 2}}}]}}\n',
         **over("namePrefix: a-\n")},
        {"base": ["Pod/p c 2"], "over": ["Pod/a-p c 2"]},
        {"base/kustomization.yaml", "base/pod.json", "base/pod-gpu-template.json", f"base/{NAMES}"},
    ),
    "missing-settings": Shape(
        {**BASE, "over/kustomization.yaml": "resources: [../base]\nsecretGenerator:\n- name: s\n  envs: [secret.env]\n"
         "namePrefix: a-\npatches:\n- path: p.yaml\n", "over/p.yaml": merge(4)},
        {"base": ONE},
    ),
}  # fmt: skip
