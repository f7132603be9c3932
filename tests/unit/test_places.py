"""Legacy names outside known PodSpecs: what each place is told for, and that look-alikes are not told at all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu2dra.codes import CODES
from gpu2dra.places import elsewhere
from gpu2dra.places import walk as places
from gpu2dra.places.row import FILE, KEYS
from gpu2dra.places.table import PLACES
from gpu2dra.places.text import Form, mentions
from gpu2dra.places.walk import MAX_FINDINGS
from gpu2dra.pointers import segments

GPU = "nvidia.com/gpu"
KEY = "nvidia.com~1gpu"
MIG = "nvidia.com/mig-1g.5gb"
LIMITS = {"limits": {GPU: 1}, "requests": {GPU: 1}}
MANIFEST = "kind: Pod\nspec:\n  containers:\n  - resources:\n      limits:\n        nvidia.com/gpu: 1\n"
COPY = '{"limits":{"nvidia.com/gpu":1}}'
QUERY = 'sum(kube_pod_resource_request{resource="nvidia_com_gpu"})'
POD = "/spec/template/spec/containers/0/resources"


def build(api: str, kind: str, values: dict[str, Any]) -> Any:
    """Return a document with a value at each pointer; digits are list indices. `FILE` has no apiVersion and kind."""
    root: Any = {} if api == FILE else {"apiVersion": api, "kind": kind}
    if api == FILE and all(pointer.startswith(("/0", "/1")) for pointer in values):
        root = []
    for pointer, value in values.items():
        at = root
        names = segments(pointer)
        for name, below in zip(names, [*names[1:], None], strict=True):
            fresh = value if below is None else [] if below.isdigit() else {}
            if isinstance(at, list):
                if len(at) == int(name):
                    at.append(fresh)
                at = at[int(name)]
            else:
                at = at.setdefault(name, fresh)
    return root


def told(doc: Any) -> dict[str, str]:
    """Return the codes found in `doc` by path."""
    found = elsewhere(doc, lambda _: False)
    assert len({finding.path for finding in found}) == len(found)
    return {finding.path: finding.code for finding in found}


def _two(api: str, kind: str, first: str, second: str, code: str, *, whole: bool = False) -> Any:
    """Return a case with limits and requests at two places: two findings, or one that counts them."""
    expected = {f"{first}/limits/{KEY}": code}
    if not whole:
        expected[f"{second}/limits/{KEY}"] = code
    return pytest.param(api, kind, {first: LIMITS, second: LIMITS}, expected, id=f"{api} {kind} {first}")


def _case(api: str, kind: str, values: dict[str, Any], expected: dict[str, str]) -> Any:
    return pytest.param(api, kind, values, expected, id=f"{api} {kind} {next(iter(values))}")


CASES = [
    # Native DRA and what a cluster writes about itself.
    _case("resource.k8s.io/v1", "DeviceClass", {"/spec/extendedResourceName": GPU}, {}),
    _case("resource.k8s.io/v1", "ResourceClaimTemplate", {"/spec/spec/x": MANIFEST}, {}),
    _case("v1", "Node", {"/status/capacity": {GPU: 8}, "/spec/x": {GPU: 8}}, {}),
    _case("topology.node.k8s.io/v1alpha2", "NodeResourceTopology", {"/zones/0/resources/0/name": GPU}, {}),
    _case("v1", "Pod", {"/status/containerStatuses/0/resources": LIMITS}, {}),
    _case("example.com/v1", "Thing", {"/status/used": {GPU: 3}}, {}),
    _case(
        "v1",
        "Pod",
        {
            f"{at}/annotations/kubectl.kubernetes.io~1last-applied-configuration": COPY
            for at in ("/metadata", "/spec/x")
        },
        {
            f"{at}/annotations/kubectl.kubernetes.io~1last-applied-configuration": "DRA419"
            for at in ("/metadata", "/spec/x")
        },
    ),
    _case(
        "operators.coreos.com/v1alpha1",
        "ClusterServiceVersion",
        {f"{at}/annotations/alm-examples": COPY for at in ("/metadata", "/spec/x")},
        {f"{at}/annotations/alm-examples": "DRA419" for at in ("/metadata", "/spec/x")},
    ),
    _case(
        "operators.coreos.com/v1alpha1",
        "ClusterServiceVersion",
        {
            "/spec/description": f"Uses {GPU}: 1",
            "/spec/customresourcedefinitions/owned/0/description": f"Asks for {GPU}.",
        },
        {"/spec/description": "DRA419"},
    ),
    _case(
        "kwok.x-k8s.io/v1alpha1",
        "Stage",
        {"/spec/next/statusTemplate": "allocatable:\n  nvidia.com/gpu: 8", "/spec/other": MANIFEST},
        {"/spec/next/statusTemplate": "DRA419"},
    ),
    # Quotas, limits, queues.
    _case(
        "v1",
        "ResourceQuota",
        {"/spec/hard": {"requests.nvidia.com/mig-1g.5gb": 2, "limits.nvidia.com/mig-2g.10gb": 1, f"requests.{GPU}": 4}},
        {"/spec/hard/requests.nvidia.com~1mig-1g.5gb": "DRA404", f"/spec/hard/requests.{KEY}": "DRA404"},
    ),
    _case(
        "v1",
        "ResourceQuota",
        {
            "/spec/hard": {
                f"requests.{GPU}": 4,
                GPU: 4,
                "gpu.nvidia.com.deviceclass.resource.k8s.io/devices": 4,
                "requests.deviceclass.resource.kubernetes.io/gpu.nvidia.com": 4,
            },
        },
        {f"/spec/hard/requests.{KEY}": "DRA404"},
    ),
    _case(
        "quota.openshift.io/v1",
        "ClusterResourceQuota",
        {"/spec/quota/hard": {f"requests.{GPU}": 0, MIG: 1}},
        {"/spec/quota/hard/nvidia.com~1mig-1g.5gb": "DRA404"},
    ),
    _case(
        "kubeflow.org/v1",
        "Profile",
        {"/spec/resourceQuotaSpec/hard": {f"requests.{GPU}": 2, f"limits.{GPU}": 2}},
        {f"/spec/resourceQuotaSpec/hard/requests.{KEY}": "DRA404"},
    ),
    _case(
        "capsule.clastix.io/v1beta2",
        "Tenant",
        {"/spec/resourceQuotas/items": [{"hard": {f"requests.{GPU}": 2}}, {"hard": {f"limits.{GPU}": 2}}]},
        {
            f"/spec/resourceQuotas/items/0/hard/requests.{KEY}": "DRA404",
            f"/spec/resourceQuotas/items/1/hard/limits.{KEY}": "DRA404",
        },
    ),
    _case(
        "v1",
        "LimitRange",
        {"/spec/limits/0/default": {GPU: 1}, "/spec/limits/0/max": {GPU: 2}},
        {f"/spec/limits/0/default/{KEY}": "DRA405"},
    ),
    _case(
        "kueue.x-k8s.io/v1beta1",
        "ClusterQueue",
        {
            "/spec/resourceGroups/0": {
                "coveredResources": ["cpu", GPU],
                "flavors": [{"resources": [{"name": GPU}]}] * 40,
            }
        },
        {"/spec/resourceGroups/0/coveredResources/1": "DRA406"},
    ),
    _case(
        "kueue.x-k8s.io/v1beta1",
        "Workload",
        {"/spec/podSets/0/template/spec/containers/0/resources": LIMITS, "/spec/x": LIMITS},
        {f"/spec/podSets/0/template/spec/containers/0/resources/limits/{KEY}": "DRA406"},
    ),
    _case(
        "config.kueue.x-k8s.io/v1beta1",
        "Configuration",
        {"/resources/excludeResourcePrefixes/0": GPU, "/resources/transformations/0/input": MIG},
        {"/resources/excludeResourcePrefixes/0": "DRA406"},
    ),
    _case(
        "scheduling.volcano.sh/v1beta1",
        "Queue",
        {"/spec/capability": {GPU: 8}, "/spec/deserved": {GPU: 4}},
        {f"/spec/capability/{KEY}": "DRA408"},
    ),
    _case(
        "scheduling.volcano.sh/v1beta1",
        "PodGroup",
        {"/spec/minResources": {GPU: 8, f"requests.{GPU}": 8}},
        {f"/spec/minResources/{KEY}": "DRA408"},
    ),
    _case(
        "scheduling.sigs.k8s.io/v1alpha1",
        "ElasticQuota",
        {"/spec/max": {GPU: 8}, "/spec/min": {GPU: 8}},
        {f"/spec/max/{KEY}": "DRA408"},
    ),
    _case(
        "scheduling.run.ai/v2",
        "Queue",
        {"/spec/resources": {GPU: 8}, "/spec/other": {GPU: 8}},
        {f"/spec/resources/{KEY}": "DRA408"},
    ),
    # Node autoscalers.
    _case(
        "machine.openshift.io/v1beta1",
        "MachineSet",
        {"/metadata/annotations/capacity.cluster-autoscaler.kubernetes.io~1gpu-type": GPU},
        {"/metadata/annotations/capacity.cluster-autoscaler.kubernetes.io~1gpu-type": "DRA407"},
    ),
    _case(
        "example.com/v1",
        "NodeGroup",
        {
            "/metadata/annotations/capacity.cluster-autoscaler.kubernetes.io~1gpu-type": GPU,
            "/spec/0/annotations/capacity.cluster-autoscaler.kubernetes.io~1gpu-type": GPU,
        },
        {
            "/metadata/annotations/capacity.cluster-autoscaler.kubernetes.io~1gpu-type": "DRA407",
            "/spec/0/annotations/capacity.cluster-autoscaler.kubernetes.io~1gpu-type": "DRA407",
        },
    ),
    _case(
        FILE,
        "values",
        {
            "/group/0/tags": {"k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/gpu": "1"},
            "/group/1/tags": {"k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/gpu": "8"},
        },
        {"/group/0/tags/k8s.io~1cluster-autoscaler~1node-template~1resources~1nvidia.com~1gpu": "DRA407"},
    ),
    _case(
        "karpenter.sh/v1",
        "NodePool",
        {
            "/spec/limits": {GPU: 10, MIG: 2},
            "/spec/other": {GPU: 1},
            "/spec/template/spec/taints/0/key": GPU,
            "/spec/template/spec/requirements/0": {"key": GPU, "operator": "Exists"},
            "/spec/template/metadata/labels": {GPU: "true"},
        },
        {f"/spec/limits/{KEY}": "DRA407"},
    ),
    _case(
        "autoscaling.openshift.io/v1",
        "ClusterAutoscaler",
        {"/spec/resourceLimits/gpus/0/type": GPU, "/spec/resourceLimits/gpus/1/type": MIG},
        {"/spec/resourceLimits/gpus/0/type": "DRA407"},
    ),
    _two(
        "autoscaling.x-k8s.io/v1", "ProvisioningRequest", "/spec/podSets/0/resources", "/spec/x", "DRA407", whole=True
    ),
    _case(
        "eksctl.io/v1alpha5",
        "ClusterConfig",
        {"/nodeGroups/0/resources": {GPU: 1}, "/nodeGroups/1/resources": {GPU: 1}},
        {f"/nodeGroups/0/resources/{KEY}": "DRA407"},
    ),
    # Model servers.
    _two(
        "serving.kserve.io/v1beta1",
        "InferenceService",
        "/spec/predictor/model/resources",
        "/spec/transformer/x",
        "DRA402",
    ),
    _two(
        "serving.kserve.io/v1alpha2",
        "LLMInferenceServiceConfig",
        "/spec/template/containers/0/resources",
        "/spec/worker/containers/0/resources",
        "DRA401",
    ),
    _two("serving.kserve.io/v1alpha1", "ClusterServingRuntime", "/spec/containers/0/resources", "/spec/x", "DRA312"),
    _two(
        "ome.io/v1beta1",
        "InferenceService",
        "/spec/engine/runner/resources",
        "/spec/decoder/runner/resources",
        "DRA402",
    ),
    _case("ome.io/v1beta1", "AcceleratorClass", {"/spec/resources/0/name": GPU}, {"/spec/resources/0/name": "DRA402"}),
    _two("apps.nvidia.com/v1alpha1", "NIMService", "/spec/resources", "/spec/x/resources", "DRA402"),
    _two("apps.nvidia.com/v1alpha1", "NIMCache", "/spec/resources", "/spec/source/resources", "DRA402"),
    _two(
        "llmaz.io/v1alpha1", "OpenModel", "/spec/inferenceConfig/flavors/0", "/spec/inferenceConfig/flavors/1", "DRA402"
    ),
    _two("inference.llmaz.io/v1alpha1", "Playground", "/spec/backendRuntimeConfig/resources", "/spec/x", "DRA402"),
    _two(
        "nvidia.com/v1alpha1",
        "DynamoGraphDeployment",
        "/spec/services/a/resources",
        "/spec/services/b/resources",
        "DRA402",
    ),
    _case(
        "nvidia.com/v1alpha1",
        "DynamoGraphDeployment",
        {"/spec/services/a/resources/limits/gpuType": GPU},
        {"/spec/services/a/resources/limits/gpuType": "DRA402"},
    ),
    _two("mlops.seldon.io/v1alpha1", "Server", "/spec/podSpec/containers/0/resources", "/spec/x", "DRA401"),
    _two("inference.llmkube.dev/v1alpha1", "Model", "/spec/hardware/gpu", "/spec/x", "DRA402"),
    _two("sagemaker.amazonaws.com/v1", "HyperPodPyTorchJob", "/spec/a/resources", "/spec/b/resources", "DRA402"),
    _case(
        "skyhook.nvidia.com/v1alpha1",
        "Skyhook",
        {"/spec/pod/resources": LIMITS, "/spec/gpuResource": GPU},
        {f"/spec/pod/resources/limits/{KEY}": "DRA412"},
    ),
    # Training and batch.
    _two("trainer.kubeflow.org/v1alpha1", "TrainJob", "/spec/trainer/resourcesPerNode", "/spec/trainer/x", "DRA402"),
    _two("kubeflow.org/v1", "Notebook", POD, "/spec/template/spec/containers/1/resources", "DRA312"),
    _two(
        "kubeflow.org/v1beta1", "Experiment", "/spec/trialTemplate/trialSpec" + POD, "/spec/trialTemplate/x", "DRA411"
    ),
    _two("serving.kserve.io/v1alpha1", "InferenceGraph", "/spec/resources", "/spec/x/resources", "DRA402"),
    _two("serving.kserve.io/v1alpha2", "LLMInferenceService", "/spec/a/resources", "/spec/b/resources", "DRA401"),
    _two(
        "kubeflow.org/v1", "MXJob", "/spec/mxReplicaSpecs/Worker" + POD, "/spec/mxReplicaSpecs/Server" + POD, "DRA312"
    ),
    _two(
        "flow.volcano.sh/v1alpha1",
        "JobFlow",
        "/spec/flows/0/patch/jobSpec/tasks/0/template/spec/containers/0/resources",
        "/spec/flows/1/patch/jobSpec/tasks/0/template/spec/containers/0/resources",
        "DRA409",
    ),
    _two("v1", "PodList", "/items/0/spec/containers/0/resources", "/items/1/spec/containers/0/resources", "DRA401"),
    _two("apps/v1", "DeploymentList", "/items/0" + POD, "/items/1" + POD, "DRA401"),
    _two(
        "sparkoperator.k8s.io/v1beta2",
        "ScheduledSparkApplication",
        "/spec/template/executor/template/spec/containers/0/resources",
        "/spec/template/driver/template/spec/containers/0/resources",
        "DRA415",
    ),
    _two(
        "sparkoperator.k8s.io/v1beta2",
        "SparkApplication",
        "/spec/batchSchedulerOptions/resources",
        "/spec/batchSchedulerOptions/x",
        "DRA415",
    ),
    _case(
        "sparkoperator.k8s.io/v1beta2",
        "SparkApplication",
        {"/spec/driver/gpu": {"name": GPU, "quantity": 1}, "/spec/executor/gpu": {"name": MIG, "quantity": 1}},
        {"/spec/driver/gpu/name": "DRA415", "/spec/executor/gpu/name": "DRA415"},
    ),
    _case(
        "argoproj.io/v1alpha1",
        "Workflow",
        {"/spec/podSpecPatch": MANIFEST, "/spec/templates/0/podSpecPatch": '{"limits": {"nvidia.com/gpu": 1}}'},
        {"/spec/podSpecPatch": "DRA411", "/spec/templates/0/podSpecPatch": "DRA411"},
    ),
    _two(
        "argoproj.io/v1alpha1",
        "CronWorkflow",
        "/spec/templates/0/container/resources",
        "/spec/templates/1/script/resources",
        "DRA312",
    ),
    _case(
        "argoproj.io/v1alpha1",
        "Workflow",
        {"/spec/templates/0/resource/manifest": MANIFEST},
        {"/spec/templates/0/resource/manifest": "DRA411"},
    ),
    _two("tekton.dev/v1", "Task", "/spec/steps/0/computeResources", "/spec/stepTemplate/computeResources", "DRA312"),
    _two("serving.knative.dev/v1", "Service", POD, "/spec/template/spec/containers/1/resources", "DRA312"),
    _two("extensions/v1beta1", "Deployment", POD, "/spec/template/spec/containers/1/resources", "DRA312"),
    _two(
        "jobset.x-k8s.io/v1alpha1",
        "JobSet",
        "/spec/replicatedJobs/0/template" + POD,
        "/spec/replicatedJobs/1/template" + POD,
        "DRA312",
    ),
    _two(
        "batch/v1beta1",
        "CronJob",
        "/spec/jobTemplate" + POD,
        "/spec/jobTemplate/spec/template/spec/initContainers/0/resources",
        "DRA312",
    ),
    # Virtual machines, notebooks, dashboards.
    _case(
        "kubevirt.io/v1",
        "KubeVirt",
        {
            "/spec/configuration/permittedHostDevices": {
                "pciHostDevices": [{"resourceName": "nvidia.com/TU104GL_Tesla_T4"}],
                "mediatedDevices": [{"resourceName": "nvidia.com/GRID_T4-1Q"}],
            }
        },
        {"/spec/configuration/permittedHostDevices/pciHostDevices/0/resourceName": "DRA402"},
    ),
    _case(
        "kubevirt.io/v1",
        "VirtualMachine",
        {"/spec/template/spec/domain/devices/gpus": [{"deviceName": "nvidia.com/GP102GL_Tesla_P40"}] * 2},
        {f"/spec/template/spec/domain/devices/gpus/{n}/deviceName": "DRA402" for n in (0, 1)},
    ),
    _case(
        "infrastructure.opendatahub.io/v1",
        "HardwareProfile",
        {
            "/spec/identifiers": [{"identifier": GPU}, {"identifier": MIG}],
            "/spec/scheduling/node/tolerations/0/key": GPU,
        },
        {"/spec/identifiers/0/identifier": "DRA412", "/spec/identifiers/1/identifier": "DRA412"},
    ),
    _case(
        "opendatahub.io/v1alpha",
        "OdhDashboardConfig",
        {"/spec/notebookSizes/0/resources": LIMITS, "/spec/modelServerSizes/0/resources": LIMITS},
        {f"/spec/notebookSizes/0/resources/limits/{KEY}": "DRA412"},
    ),
    _case(
        "image.openshift.io/v1",
        "ImageStream",
        {"/metadata/annotations/opendatahub.io~1recommended-accelerators": f'["{GPU}"]'},
        {"/metadata/annotations/opendatahub.io~1recommended-accelerators": "DRA412"},
    ),
    _case(
        "v1",
        "Thing",
        {
            "/a/annotations/opendatahub.io~1recommended-accelerators": GPU,
            "/b/annotations/opendatahub.io~1recommended-accelerators": GPU,
        },
        {
            "/a/annotations/opendatahub.io~1recommended-accelerators": "DRA412",
            "/b/annotations/opendatahub.io~1recommended-accelerators": "DRA412",
        },
    ),
    _case(
        FILE,
        "values",
        {
            "/hub/singleuser/profileList/0/kubespawner_override": {
                "extra_resource_limits": {GPU: "1"},
                "tolerations": [{"key": GPU}],
                "node_selector": {GPU: "true"},
            },
            "/hub/singleuser/profileList/0/description": f"One GPU | {GPU}: 1",
            "/hub/singleuser/profileList/0/display_name": f"One GPU | {GPU}: 1",
            "/hub/x/profileList/0/extra_resource_guarantees": {MIG: 1},
            "/hub/singleuser/extraResource/limits": {GPU: 1},
            "/hub/singleuser/other/extraResource/guarantees": {GPU: 1},
        },
        {
            f"/hub/singleuser/profileList/0/kubespawner_override/extra_resource_limits/{KEY}": "DRA417",
            "/hub/singleuser/profileList/0/description": "DRA419",
            "/hub/singleuser/profileList/0/display_name": "DRA419",
            "/hub/x/profileList/0/extra_resource_guarantees/nvidia.com~1mig-1g.5gb": "DRA417",
            f"/hub/singleuser/extraResource/limits/{KEY}": "DRA417",
            f"/hub/singleuser/other/extraResource/guarantees/{KEY}": "DRA417",
        },
    ),
    # Templates, charts, patches, wrappers.
    _two(
        "template.openshift.io/v1",
        "Template",
        "/objects/0/spec/containers/0/resources",
        "/objects/1/spec/containers/0/resources",
        "DRA413",
    ),
    _two("helm.toolkit.fluxcd.io/v2", "HelmRelease", "/spec/values/a/resources", "/spec/values/b/resources", "DRA403"),
    _case(
        "helm.toolkit.fluxcd.io/v2",
        "HelmRelease",
        {"/spec/postRenderers/0/kustomize/patches": [{"patch": MANIFEST}, {"patch": MANIFEST}]},
        {f"/spec/postRenderers/0/kustomize/patches/{n}/patch": "DRA409" for n in (0, 1)},
    ),
    _case(
        "helm.cattle.io/v1",
        "HelmChart",
        {"/spec/valuesContent": MANIFEST, "/spec/set": {r"resources.limits.nvidia\.com/gpu": "1"}},
        {"/spec/valuesContent": "DRA403", r"/spec/set/resources.limits.nvidia\.com~1gpu": "DRA403"},
    ),
    _case(
        "argoproj.io/v1alpha1",
        "Application",
        {
            "/spec/source/helm/valuesObject/resources": LIMITS,
            "/spec/source/helm/values": MANIFEST,
            "/spec/source/helm/parameters/0/name": r"resources.limits.nvidia\.com/gpu",
            "/spec/sources/0/kustomize/patches/0/patch": MANIFEST,
            "/spec/sources/0/kustomize/patches/1/patch": MANIFEST,
        },
        {
            f"/spec/source/helm/valuesObject/resources/limits/{KEY}": "DRA403",
            "/spec/source/helm/values": "DRA403",
            "/spec/source/helm/parameters/0/name": "DRA403",
            "/spec/sources/0/kustomize/patches/0/patch": "DRA409",
            "/spec/sources/0/kustomize/patches/1/patch": "DRA409",
        },
    ),
    _case(
        "skaffold/v4beta6",
        "Config",
        {
            "/deploy/helm/releases/0/setValues": {r"resources.limits.nvidia\.com/gpu": 1},
            "/deploy/helm/releases/1/args": [r"--set=resources.limits.nvidia\.com/gpu"],
        },
        {
            r"/deploy/helm/releases/0/setValues/resources.limits.nvidia\.com~1gpu": "DRA403",
            "/deploy/helm/releases/1/args/0": "DRA403",
        },
    ),
    _case(
        "kustomize.toolkit.fluxcd.io/v1",
        "Kustomization",
        {"/spec/patches": [{"patch": MANIFEST}, {"patch": MANIFEST}]},
        {"/spec/patches/0/patch": "DRA409", "/spec/patches/1/patch": "DRA409"},
    ),
    _case(
        "kustomize.config.k8s.io/v1beta1",
        "Kustomization",
        {
            "/patches": [
                {"patch": f"- op: replace\n  path: /spec/containers/0/resources/limits/{KEY}\n  value: 2\n"},
                {"patch": "- op: add\n  path: /spec/tolerations\n  value:\n    - key: nvidia.com/gpu\n"},
            ],
            "/replacements/0/targets/0/fieldPaths/0": f"spec.containers.0.resources.limits.[{GPU}]",
        },
        {"/patches/0/patch": "DRA409", "/replacements/0/targets/0/fieldPaths/0": "DRA409"},
    ),
    _case(
        "kustomize.config.k8s.io/v1beta1",
        "Kustomization",
        {"/configMapGenerator/0/literals/0": f"a={GPU}: 1", "/secretGenerator/0/literals/0": f"a={GPU}: 1"},
        {"/configMapGenerator/0/literals/0": "DRA440", "/secretGenerator/0/literals/0": "DRA440"},
    ),
    _case(FILE, "kustomization", {"/patches/0/patch": MANIFEST}, {"/patches/0/patch": "DRA409"}),
    _case(
        FILE,
        "JSON Patch",
        {
            "/0": {"op": "replace", "path": f"/spec/containers/0/resources/limits/{KEY}", "value": 2},
            "/1": {"op": "add", "path": "/spec/containers/0/resources", "value": LIMITS},
        },
        {"/0/path": "DRA418", f"/1/value/limits/{KEY}": "DRA418"},
    ),
    _two(
        "work.open-cluster-management.io/v1",
        "ManifestWork",
        "/spec/workload/manifests/0" + POD,
        "/spec/workload/manifests/1" + POD,
        "DRA411",
    ),
    # Schemas, policies, alerts, configuration.
    _case(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        {
            "/spec/versions/0/schema": {"description": f"like {GPU}: 8", "default": {GPU: 1}},
            "/spec/versions/1/x": f"{GPU}: 1",
        },
        {"/spec/versions/0/schema/description": "DRA419"},
    ),
    _case(
        "kyverno.io/v1",
        "ClusterPolicy",
        {
            "/spec/rules/0/validate/pattern/spec/containers/0/resources": LIMITS,
            "/spec/rules/1/cel": f"'{GPU}' in c.limits",
        },
        {f"/spec/rules/0/validate/pattern/spec/containers/0/resources/limits/{KEY}": "DRA414"},
    ),
    _case(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        {"/spec/validations/0/expression": f"!has(c.resources.limits) || !('{GPU}' in c.resources.limits)"},
        {"/spec/validations/0/expression": "DRA414"},
    ),
    _case(
        "monitoring.coreos.com/v1",
        "PrometheusRule",
        {
            "/spec/groups/0/rules": [
                {"expr": QUERY, "annotations": {"description": f"{GPU} is short", "summary": f"of {GPU}"}},
                {"expr": QUERY},
            ],
        },
        {
            "/spec/groups/0/rules/0/expr": "DRA414",
            "/spec/groups/0/rules/0/annotations/description": "DRA419",
            "/spec/groups/0/rules/1/expr": "DRA414",
        },
    ),
    _case(
        "grafana.integreatly.org/v1beta1",
        "GrafanaDashboard",
        {"/spec/json": QUERY, "/spec/x": QUERY},
        {"/spec/json": "DRA414"},
    ),
    _case(FILE, "rules", {"/groups/0/rules": [{"expr": QUERY}, {"expr": QUERY}]}, {"/groups/0/rules/0/expr": "DRA414"}),
    _case(FILE, "board", {"/panels/0/expr": QUERY, "/x": f"of {GPU} and so on"}, {"/panels/0/expr": "DRA414"}),
    _case(
        "keda.sh/v1alpha1",
        "ScaledObject",
        {"/spec/triggers": [{"query": QUERY}, {"query": f"of {GPU} in text"}]},
        {"/spec/triggers/0/query": "DRA414", "/spec/triggers/1/query": "DRA414"},
    ),
    _case(
        "autoscaling.k8s.io/v1",
        "VerticalPodAutoscaler",
        {"/spec/resourcePolicy/containerPolicies/0": {"minAllowed": {GPU: 1}, "maxAllowed": {GPU: 1}}},
        {f"/spec/resourcePolicy/containerPolicies/0/minAllowed/{KEY}": "DRA414"},
    ),
    _case(
        "nvidia.com/v1",
        "ClusterPolicy",
        {"/spec/validator/plugin/env": [{"value": GPU}, {"value": MIG}], "/spec/daemonsets/tolerations/0/key": GPU},
        {"/spec/validator/plugin/env/0/value": "DRA416"},
    ),
    _case(
        "nfd.k8s-sigs.io/v1alpha1",
        "NodeFeatureRule",
        {"/spec/rules/0/extendedResources": {GPU: "@x"}, "/spec/rules/1/extendedResources": {GPU: "@x"}},
        {f"/spec/rules/0/extendedResources/{KEY}": "DRA416"},
    ),
    _case(
        "kubescheduler.config.k8s.io/v1",
        "KubeSchedulerConfiguration",
        {"/profiles/0/pluginConfig/0/args/scoringStrategy/resources": [{"name": GPU}, {"name": MIG}]},
        {"/profiles/0/pluginConfig/0/args/scoringStrategy/resources/0/name": "DRA416"},
    ),
    _case(
        FILE,
        "plugin",
        {"/version": "v1", "/sharing/timeSlicing/resources": [{"name": GPU}, {"name": MIG}]},
        {"/sharing/timeSlicing/resources/0/name": "DRA416"},
    ),
    _case(
        FILE,
        "scheduler",
        {"/actions": "allocate", "/tiers/0/arguments": {"predicate": GPU, "binpack": GPU}},
        {"/tiers/0/arguments/predicate": "DRA416"},
    ),
    _case(
        "v1",
        "ConfigMap",
        {
            "/data/a": "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n",
            "/data/b": "version: v1\nsharing:\n  mps:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 4\n",
            "/data/c": "apiVersion: config.kueue.x-k8s.io/v1beta1\nresources:\n  x:\n  - nvidia.com/gpu\n",
            "/data/d": "apiVersion: config.kueue.x-k8s.io/v1beta1\nx: nvidia.com/gpu\n",
            "/data/e": "apiVersion: kubescheduler.config.k8s.io/v1\nresources:\n- name: nvidia.com/gpu\n",
            "/data/f": "actions: allocate\ntiers:\n- plugins:\n  - arguments:\n      binpack: nvidia.com/gpu\n",
            "/data/g": '{"panels": [{"expr": "sum(x{resource=\\"nvidia_com_gpu\\"})"}]}',
            "/data/h": "groups:\n- rules:\n  - record: gpus\n    expr: of nvidia.com/gpu in text\n",
            "/data/pod.yaml": MANIFEST,
            "/data/notes": "# nvidia.com/gpu: 1 was here\nCSI_TOLERATIONS: |\n  - key: nvidia.com/gpu\n",
        },
        {
            "/data/a": "DRA416",
            "/data/b": "DRA416",
            "/data/c": "DRA406",
            "/data/d": "DRA406",
            "/data/e": "DRA416",
            "/data/f": "DRA416",
            "/data/g": "DRA414",
            "/data/h": "DRA414",
            "/data/pod.yaml": "DRA411",
        },
    ),
    # Documents without apiVersion and kind.
    _case(
        FILE,
        "unittest",
        {
            "/suite": "gpu",
            "/tests": [{"set": {"resources": LIMITS}, "asserts": [{"equal": {"path": f"limits['{GPU}']"}}]}],
        },
        {f"/tests/0/set/resources/limits/{KEY}": "DRA419"},
    ),
    _case(
        FILE,
        "workflow",
        {"/on": "push", "/jobs/a/steps": [{"run": f"kubectl run --limits={GPU}=1"}, {"run": f"echo '{GPU}'"}]},
        {"/jobs/a/steps/0/run": "DRA512"},
    ),
    _case(
        FILE,
        "marketplace",
        {"/x-google-marketplace/clusterConstraints/resources": [{"requests": {"gpu": {GPU: {"limits": 1}}}}] * 2},
        {f"/x-google-marketplace/clusterConstraints/resources/0/requests/gpu/{KEY}": "DRA512"},
    ),
    _case(
        "v1",
        "ConfigMap",
        {f"/data/{n}-values.yaml": MANIFEST for n in "ab"},
        {f"/data/{n}-values.yaml": "DRA403" for n in "ab"},
    ),
    _case(
        FILE,
        "helmfile",
        {f"/releases/{n}": {"chart": "a/b", "values": [{"limits": {GPU: 1}}]} for n in (0, 1)},
        {f"/releases/{n}/values/0/limits/{KEY}": "DRA403" for n in (0, 1)},
    ),
    _case(
        FILE,
        "values",
        {f"/{at}/ollama/gpu/nvidiaResource": GPU for at in "ab"},
        {f"/{at}/ollama/gpu/nvidiaResource": "DRA403" for at in "ab"},
    ),
    _two(FILE, "values", "/nimOperator/a/resources", "/x/nimOperator/b/resources", "DRA403"),
    _two(FILE, "values", "/head/resources", "/worker/resources", "DRA403"),
    _two(FILE, "values", "/additionalWorkerGroups/a/resources", "/additionalWorkerGroups/b/resources", "DRA403"),
    _two(FILE, "values", "/controllers/a/containers/b/resources", "/controllers/a/containers/c/resources", "DRA403"),
    _two(FILE, "values", "/decode/containers/0/resources", "/prefill/containers/0/resources", "DRA403"),
    _case(
        FILE,
        "values",
        {
            "/resources": LIMITS,
            "/worker/resources": {"limits": {MIG: 1, GPU: 0}},
            "/head/resources": {"limits": {GPU: 0}},
            "/accelerator/resource": GPU,
            "/resourceMem": "nvidia.com/gpumem",
            "/args": [f"--resource={GPU}"],
            "/extraManifest": MANIFEST,
            "/tolerations/key": GPU,
            "/gpuNodeLabels": {GPU: 1},
            "/notes": f"about {GPU} and more",
        },
        {
            f"/resources/limits/{KEY}": "DRA403",
            "/worker/resources/limits/nvidia.com~1mig-1g.5gb": "DRA403",
            f"/head/resources/limits/{KEY}": "DRA101",
            "/accelerator/resource": "DRA403",
            "/resourceMem": "DRA403",
            "/args/0": "DRA403",
            "/extraManifest": "DRA411",
            "/notes": "DRA419",
        },
    ),
    _case(FILE, "list", {"/0/resources": {GPU: 1}, "/1/resources": {GPU: 2}}, {f"/0/resources/{KEY}": "DRA512"}),
    _case(
        "chainsaw.kyverno.io/v1alpha1",
        "Test",
        {
            "/spec/steps/0/script": f"kubectl run --limits={GPU}=1",
            "/spec/steps/1/try": LIMITS,
            "/spec/description": f"a {GPU} b",
        },
        {"/spec/steps/0/script": "DRA411", f"/spec/steps/1/try/limits/{KEY}": "DRA411", "/spec/description": "DRA419"},
    ),
    # Everything else.
    _case(
        "apps/v1",
        "Deployment",
        {
            "/spec/template/spec/containers/0": {
                "limits": {GPU: 1},
                "env": [{"value": GPU}],
                "command": ["sh", "-c", MANIFEST],
            },
            "/spec/template/spec/nodeSelector": {GPU: "present"},
            "/spec/strategy/limits": {GPU: 1},
        },
        {
            f"/spec/template/spec/containers/0/limits/{KEY}": "DRA420",
            "/spec/template/spec/containers/0/env/0/value": "DRA412",
            "/spec/template/spec/containers/0/command/2": "DRA411",
            f"/spec/strategy/limits/{KEY}": "DRA420",
        },
    ),
    _two(
        "example.com/v1",
        "Thing",
        "/spec/podSpec/containers/0/resources",
        "/spec/podSpec/initContainers/0/resources",
        "DRA401",
    ),
    _two("example.com/v1", "Thing", "/spec/a/resources", "/spec/b/resources", "DRA402"),
    _case(
        "example.com/v1",
        "Thing",
        {
            "/a": GPU,
            "/b": f"x={GPU}",
            "/c": MANIFEST,
            "/d": f"path: /limits/{KEY}",
            "/e": QUERY,
            "/f": f"about {GPU} here",
            "/g/a": GPU,
            "/g/c": MANIFEST,
            "/g/d": f"path: /limits/{KEY}",
            "/g/e": QUERY,
            "/g/f": f"about {GPU} here",
        },
        {
            "/a": "DRA412",
            "/b": "DRA412",
            "/c": "DRA411",
            "/d": "DRA418",
            "/e": "DRA414",
            "/f": "DRA419",
            "/g/a": "DRA412",
            "/g/c": "DRA411",
            "/g/d": "DRA418",
            "/g/e": "DRA414",
            "/g/f": "DRA419",
        },
    ),
]


@pytest.mark.parametrize(("api", "kind", "values", "expected"), CASES)
def test_each_place_is_told_for_what_it_is(
    api: str, kind: str, values: dict[str, Any], expected: dict[str, str]
) -> None:
    assert told(build(api, kind, values)) == expected


def _without_caches(document: Any) -> Any:
    places._rows.cache_clear()
    try:
        return elsewhere(document, lambda _: False)
    except StopIteration:  # no row was left that takes the hit
        return None


@pytest.mark.parametrize("number", range(len(PLACES)))
def test_every_row_of_the_table_is_needed_as_it_is(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    row = PLACES[number]
    documents = [build(*case.values[:3]) for case in CASES if row.applies(case.values[0], _kind(case))]
    before = [_without_caches(document) for document in documents]
    mutants = [[], [row._replace(code="DRA001")]]
    if row.code and not (row.forms == KEYS and "**" not in row.path):  # else there is nothing to group, or one map only
        mutants.append([row._replace(whole=not row.whole)])
    for mutant in mutants:
        monkeypatch.setattr(places, "PLACES", (*PLACES[:number], *mutant, *PLACES[number + 1 :]))
        after = [_without_caches(document) for document in documents]
        assert after != before, f"nothing notices {mutant or 'the loss of'} {row}"
    places._rows.cache_clear()


def _kind(case: Any) -> str:
    return places._type_of(build(*case.values[:3]))[1]


def test_rows_name_codes_that_exist_and_say_what_to_do() -> None:
    for row in PLACES:
        assert row.code == "" or (row.code in CODES and row.advice.endswith("."))


@pytest.mark.parametrize("form", list(Form))
def test_the_last_rows_take_any_form(form: Form) -> None:
    assert any(row.applies("example.com/v1", "Thing") and row.hits(form, "/x", "y") for row in PLACES)


LOOKALIKES = [
    {"spec": {"tolerations": [{"key": GPU, "operator": "Exists", "effect": "NoSchedule"}]}},
    {"spec": {"extraTolerations": [{"key": GPU}], "toleration": {"key": GPU}, "startupTaints": [{"key": GPU}]}},
    {"spec": {"anything": [{"key": GPU, "effect": "NoSchedule"}]}},
    {"spec": {"anything": [{"key": GPU, "operator": "Exists"}]}},
    {"spec": {"nodeSelector": {GPU: "true", "nvidia.com/gpu.product": "A100", "nvidia.com/gpu.count": "8"}}},
    {"spec": {"nodeSelector": {GPU: 1}}},
    {
        "spec": {
            "affinity": {
                "nodeAffinity": {"x": [{"matchExpressions": [{"key": GPU, "operator": "In", "values": [GPU]}]}]}
            }
        }
    },
    {"metadata": {"labels": {GPU: "yes", "nvidia.com/gpu.deploy.driver": "true"}, "annotations": {GPU: 1}}},
    {"spec": {"somewhere": {GPU: "present"}, "elsewhere": {GPU: True}}},
    {
        "spec": {
            "resources": {"limits": {"nvidia.com/rdma_shared_device_a": 1, "nvidia.com/hostdev": 1, "amd.com/gpu": 1}}
        }
    },
    {"spec": {"device": "nvidia.com/gpu=all", "other": "management.nvidia.com/gpu", "url": "https://nvidia.com/gpu"}},
    {"metadata": {"managedFields": [{"fieldsV1": {"f:limits": {"f:nvidia.com/gpu": {}}}}]}},
]


@pytest.mark.parametrize("lookalike", LOOKALIKES, ids=lambda doc: str(doc)[:60])
@pytest.mark.parametrize("head", [{}, {"apiVersion": "example.com/v1", "kind": "Thing"}], ids=["file", "object"])
def test_lookalikes_are_no_findings(head: dict[str, Any], lookalike: dict[str, Any]) -> None:
    assert told({**head, **lookalike}) == {}


def test_limits_below_a_field_that_sounds_like_labels_are_still_a_request() -> None:
    assert told({"nodeLabels": {"limits": {GPU: "true"}}}) == {f"/nodeLabels/limits/{KEY}": "DRA403"}


TEXTS = [
    ("limits:\n  nvidia.com/gpu: 1", [(Form.REQUEST, 1)]),
    ("limits:\n  cpu: 1\n  # a note\n  nvidia.com/gpu: '2'\n", [(Form.REQUEST, 3)]),
    ("limits:\n  nvidia.com/gpu: ${GPUS}", [(Form.REQUEST, 1)]),
    ("limits:\n  nvidia.com/gpu: {{ .Values.gpus }}", [(Form.REQUEST, 1)]),
    ("nodeSelector:\n  zone: a\n  nvidia.com/gpu: 1\n", []),
    ("nodeSelector:\n# x\n  nvidia.com/gpu: 1\n", []),
    ("nodeSelector: &all\n  nvidia.com/gpu: 1\n", []),
    ("labels: {nvidia.com/gpu: 1}", []),
    ("limits: {nvidia.com/gpu: 1}  # tolerations are set elsewhere", [(Form.REQUEST, 0)]),
    ("nodeSelector:\n  nvidia.com/gpu: 'true'", []),
    ("- key: nvidia.com/gpu\n  operator: Exists", []),
    ('{"key": "nvidia.com/gpu"}', []),
    ('{"tolerations":[{"key":"nvidia.com/gpu"}],"resources":{"limits":{"nvidia.com/gpu":1}}}', [(Form.REQUEST, 0)]),
    (r'kubectl patch -p "{\"limits\":{\"nvidia.com/gpu\":1}}"', [(Form.REQUEST, 0)]),
    (r"helm install --set resources.limits.nvidia\.com/gpu=2,tolerations[0].key=nvidia\.com/gpu", [(Form.REQUEST, 0)]),
    ("kubectl run --labels=a=b --limits=nvidia.com/gpu=1 x", [(Form.REQUEST, 0)]),
    ("kubectl label node a nvidia.com/gpu=1", []),
    ("kubectl taint node a nvidia.com/gpu=present:NoSchedule", []),
    ("tool --accelerated nvidia.com/gpu:NoExecute", []),
    ("podman run --device nvidia.com/gpu=all x", []),
    ("ctr run --gpus nvidia.com/gpu=0:1 x", []),
    ("# nvidia.com/gpu: 1", []),
    ("// nvidia.com/gpu: 1", []),
    ("cpu: 1 # nvidia.com/gpu: 1", []),
    ("path: /spec/containers/0/resources/limits/nvidia.com~1gpu", [(Form.POINTER, 0)]),
    ("path: /metadata/labels/nvidia.com~1gpu", []),
    ('[{"path":"/spec/tolerations"},{"path":"/limits/nvidia.com~1gpu"}]', [(Form.POINTER, 0)]),
    ('sum(x{resource="nvidia.com/gpu"})', [(Form.METRIC, 0)]),
    ('label_replace(x{resource=~"amd.com/gpu|nvidia.com/gpu"})', [(Form.METRIC, 0)]),
    ("sum(\n  x{resource='nvidia_com_mig_1g_5gb'})", [(Form.METRIC, 1)]),
    ("# x{resource='nvidia_com_gpu'}", []),
    ("kube_node_labels{label_nvidia_com_gpu_product=~'A.*'}", []),
    ("nvidia_com_gpu_product", []),
    (r"kubectl get node -o jsonpath={.status.allocatable.nvidia\.com/gpu}", [(Form.VALUE, 0)]),
    ("'nvidia.com/gpu' in c.resources.limits", [(Form.VALUE, 0)]),
    ("resources.get('nvidia.com/gpu')", [(Form.VALUE, 0)]),
    ("names:\n- nvidia.com/gpu\n- nvidia.com/mig-1g.5gb", [(Form.VALUE, 1), (Form.VALUE, 2)]),
    ("tool --resource-name nvidia.com/gpu", [(Form.VALUE, 0)]),
    ("It asks for nvidia.com/gpu. Then it stops.", [(Form.PROSE, 0)]),
    ("It adds a toleration for nvidia.com/gpu.", []),
    ("nodes have nvidia.com/gpu.product and nvidia.com/rdma", []),
    ("management.nvidia.com/gpu=1, https://nvidia.com/gpu: 1", []),
    ("my-nvidia.com/gpu: 1", []),
    ("tags: k8s.io/cluster-autoscaler/node-template/resources/nvidia.com/gpu=1", [(Form.REQUEST, 0)]),
    ("limits:\n  volcano.sh/vgpu-number: 1", [(Form.REQUEST, 1)]),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS, ids=[text[:50] for text, _ in TEXTS])
def test_names_inside_strings(text: str, expected: list[tuple[Form, int]]) -> None:
    assert [(mention.form, mention.line) for mention in mentions(text)] == expected


def test_a_string_gives_one_finding_at_the_line_of_its_strongest_mention() -> None:
    text = "about nvidia.com/gpu here\nlimits:\n  nvidia.com/mig-1g.5gb: 1\n---\nlimits:\n  nvidia.com/gpu: 1\n"
    (finding,) = elsewhere({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": text}}, lambda _: False)
    assert (finding.code, finding.path, finding.line) == ("DRA411", "/data/a", 2)
    assert finding.message.startswith("nvidia.com/mig-1g.5gb, nvidia.com/gpu in a string of ConfigMap. ")


def test_a_string_with_very_many_requests_is_read_no_further_than_needed() -> None:
    text = "limits:\n" + "  nvidia.com/gpu: 1\n" * 5_000 + "  nvidia.com/mig-1g.5gb: 1\n"
    (finding,) = elsewhere({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": text}}, lambda _: False)
    assert (finding.line, finding.message.split(" in ")[0]) == (1, GPU)


def test_what_the_plan_has_dealt_with_is_left_out() -> None:
    doc = build("apps/v1", "Deployment", {POD: LIMITS, "/spec/x": LIMITS})
    covered = {f"{POD}/limits/{KEY}", f"{POD}/requests/{KEY}"}
    assert [finding.path for finding in elsewhere(doc, covered.__contains__)] == [f"/spec/x/limits/{KEY}"]


def test_requests_alone_are_told_at_the_request() -> None:
    assert told({"resources": {"requests": {GPU: 1}}}) == {f"/resources/requests/{KEY}": "DRA403"}


def test_messages_name_the_place_the_names_and_the_count() -> None:
    doc = {"a": {"resources": {"requests": {GPU: 1}, "limits": {GPU: 1, MIG: 2, "nvidia.com/mig-2g.10gb": 0}}}}
    (finding,) = elsewhere(doc, lambda _: False)
    assert finding.message.startswith(f"{GPU}, {MIG} in Helm values (a.resources). The chart's templates")
    queue = build("kueue.x-k8s.io/v1", "ClusterQueue", {"/spec/resourceGroups/0/coveredResources": [GPU, MIG, GPU]})
    (finding,) = elsewhere(queue, lambda _: False)
    assert finding.message.startswith(f"{GPU}, {MIG} in ClusterQueue in 3 places. Kueue counts")
    zeros = build("example.com/v1", "Thing", {"/spec/resources": {"limits": {GPU: "0"}}})
    (finding,) = elsewhere(zeros, lambda _: False)
    assert finding.message == f"{GPU}: 0 in Thing. No GPU is asked for."


def test_a_quota_of_zero_is_a_quota() -> None:
    quota = build("v1", "ResourceQuota", {"/spec/hard": {f"requests.{GPU}": 0}})
    assert told(quota) == {f"/spec/hard/requests.{KEY}": "DRA404"}


def test_one_object_gives_a_bounded_number_of_findings_and_counts_the_rest() -> None:
    found = elsewhere({f"worker{n:03}": {"resources": LIMITS} for n in range(MAX_FINDINGS + 7)}, lambda _: False)
    assert len(found) == MAX_FINDINGS
    assert "(and 7 more like this one)" in found[-1].message
    assert all("more like this" not in finding.message for finding in found[:-1])
    exact = elsewhere({f"worker{n:03}": {"resources": LIMITS} for n in range(MAX_FINDINGS)}, lambda _: False)
    assert len(exact) == MAX_FINDINGS
    assert "more like this" not in exact[-1].message


def test_findings_come_in_document_order() -> None:
    doc = {"b": {"limits": {GPU: 1}}, "a": [GPU, {"limits": {MIG: 1}}], "0": MANIFEST}
    paths = [finding.path for finding in elsewhere(doc, lambda _: False)]
    assert paths == [f"/b/limits/{KEY}", "/a/0", "/a/1/limits/nvidia.com~1mig-1g.5gb", "/0"]


def test_depth_cycles_and_alias_bombs_do_no_harm() -> None:
    deep: Any = {GPU: 1}
    for _ in range(20_000):
        deep = {"limits": deep}
    assert len(elsewhere(deep, lambda _: False)) == 1
    cycle: dict[str, Any] = {"limits": {GPU: 1}}
    cycle["self"] = cycle
    assert 1 <= len(elsewhere(cycle, lambda _: False)) <= MAX_FINDINGS
    bomb: Any = {"limits": {GPU: 1}}
    for _ in range(30):
        bomb = [bomb] * 9
    assert len(elsewhere({"bomb": bomb}, lambda _: False)) == MAX_FINDINGS


@pytest.mark.parametrize(
    "doc", [None, 1, 1.5, "", True, [], {}, {"apiVersion": 1, "kind": None}, [None], {1: {None: GPU}}]
)
def test_any_data_is_taken(doc: Any) -> None:
    assert all(finding.code in CODES for finding in elsewhere(doc, lambda _: False))


def test_a_document_that_is_one_string_is_told_at_its_root() -> None:
    assert told(GPU) == {"": "DRA512"}
    assert told(MANIFEST) == {"": "DRA411"}


_NAMES = st.sampled_from(["spec", "containers", "resources", "a~b/c", "values", "0", "env", "data", "template"])
_LEAVES = st.sampled_from([1, None, "x", GPU, MANIFEST, f"about {GPU}", "nvidia.com/gpu.product", LIMITS])
_TREES = st.recursive(_LEAVES, lambda below: st.lists(below, max_size=3) | st.dictionaries(_NAMES, below, max_size=3))
_HEADS = st.sampled_from([{}, {"apiVersion": "v1", "kind": "Pod"}, {"apiVersion": "example.com/v1", "kind": "Thing"}])


@given(head=_HEADS, tree=_TREES)
def test_nothing_is_passed_over_in_silence(head: dict[str, Any], tree: Any) -> None:
    found = elsewhere({**head, "top": tree}, lambda _: False)
    assert bool(found) == any(name in str([tree]) for name in (f"{GPU}'", f"{GPU}:", f"about {GPU}"))
    assert found == elsewhere({**head, "top": tree}, lambda _: False)
    for finding in found:
        at: Any = {**head, "top": tree}
        for name in segments(finding.path):
            at = at[int(name)] if isinstance(at, list) else at[name]
        assert GPU in str(at) or segments(finding.path)[-1] == GPU
