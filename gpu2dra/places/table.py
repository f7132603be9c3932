"""The table of places outside a PodSpec where legacy names stand: which code each gets, and what to do about it.

The first row that matches decides.
"""

from __future__ import annotations

from gpu2dra.places.operators import OPERATORS, UNKNOWN
from gpu2dra.places.row import FILE, KEYS, NAMES, TEXT, Place
from gpu2dra.places.text import Form

_MONITORING = (
    "monitoring.coreos.com/*|monitoring.openshift.io/*|monitoring.googleapis.com/*|operator.victoriametrics.com/*"
)
_POLICIES = (
    "templates.gatekeeper.sh/*|constraints.gatekeeper.sh/*|kyverno.io/*|policies.kyverno.io/*|"
    "admissionregistration.k8s.io/*|policies.kubewarden.io/*"
)
_WRAPPERS = (
    "work.open-cluster-management.io/*|policy.open-cluster-management.io/*|kubernetes.crossplane.io/*|core.oam.dev/*"
)
_ASKING = frozenset({Form.KEY, Form.REQUEST, Form.POINTER, Form.METRIC, Form.VALUE})

_NEUTRAL: tuple[Place, ...] = (
    # Native DRA, and what a cluster writes about itself.
    Place("resource.k8s.io/*", "*", "/**", "", ""),
    Place("v1|topology.node.k8s.io/*", "Node|NodeResourceTopology", "/**", "", ""),
    Place("*/*|v1", "*", "/status/**", "", ""),
    Place(
        "*", "*", "/**/annotations/kubectl.kubernetes.io~1last-applied-configuration", "DRA419",
        "kubectl keeps a copy of the manifest in this annotation and writes it anew at the next apply.", TEXT,
    ),
    Place(
        "*", "*", "/**/annotations/alm-examples", "DRA419",
        "alm-examples are samples that a console offers; nothing runs them.", TEXT,
    ),
    Place(
        "kwok.x-k8s.io/*", "*", "/**", "DRA419",
        "KWOK simulates nodes that offer the resource. Add ResourceSlices if the simulation is to offer devices by "
        "DRA.",
        whole=True,
    ),
)  # fmt: skip

_QUOTAS: tuple[Place, ...] = (
    Place(
        "v1", "ResourceQuota", "/spec/hard/*nvidia.com~1mig-*", "DRA404",
        "A quota for each MIG profile cannot be said with claims: <class>.deviceclass.resource.k8s.io/devices counts "
        "a whole DeviceClass. Make one DeviceClass per profile if profiles must be counted apart.", KEYS,
    ),
    Place(
        "v1", "ResourceQuota", "/spec/hard/*", "DRA404",
        "It does not count claims on Kubernetes 1.34 and 1.35. Add gpu.nvidia.com.deviceclass.resource.k8s.io/devices "
        "with the same amount beside it. A quota with scopes cannot be said with claims, since scopes are about pods.",
        KEYS,
    ),
    Place(
        "quota.openshift.io/*", "ClusterResourceQuota", "/spec/quota/hard/*", "DRA404",
        "It counts pods by this resource, not claims. Add gpu.nvidia.com.deviceclass.resource.k8s.io/devices and "
        "check that this quota controller counts it.", KEYS,
    ),
    Place(
        "*", "*", "/**/hard/*", "DRA404",
        "A ResourceQuota is made from it. Add gpu.nvidia.com.deviceclass.resource.k8s.io/devices with the same amount.",
        KEYS,
    ),
    Place(
        "v1", "LimitRange", "/spec/limits/**", "DRA405",
        "It puts the limit back on converted pods (default) or refuses them (min, max). Remove the resource here "
        "before workloads of this namespace are converted.", KEYS, whole=True,
    ),
    # Kueue's documentation of DRA; the gate was called DynamicResourceAllocation before 0.18.
    Place(
        "kueue.x-k8s.io/*", "ClusterQueue|Cohort", "/spec/resourceGroups/**", "DRA406",
        "Kueue counts claims only for DeviceClasses that deviceClassMappings in its configuration maps to a resource "
        "name (Kueue 0.14 and later; gate KueueDRAIntegration, on by default from 0.19). Map gpu.nvidia.com to this "
        "name, and both ways share one quota.", whole=True,
    ),
    Place(
        "kueue.x-k8s.io/*", "*", "/**", "DRA406",
        "Kueue made or reads this object by the extended resource; it sees claims only with deviceClassMappings.",
        whole=True,
    ),
    Place(
        "config.kueue.x-k8s.io/*", "Configuration", "/**", "DRA406",
        "This is Kueue's configuration: add the DeviceClass under resources.deviceClassMappings.", whole=True,
    ),
    # volcano-sh/volcano#5058.
    Place(
        "scheduling.volcano.sh/*", "Queue", "/spec/**", "DRA408",
        "Volcano 1.15 and later count claims of a queue under the key deviceclass/gpu.nvidia.com, with the capacity "
        "plugin and its argument capacity.DynamicResourceAllocationEnable. Add that key beside this one.",
        NAMES, whole=True,
    ),
    Place(
        "scheduling.volcano.sh/*|scheduling.x-k8s.io/*|scheduling.sigs.k8s.io/*", "PodGroup", "/spec/minResources/*",
        "DRA408", "minResources must be free before the group starts, and claims do not count there. Remove the "
        "name when the members are converted, or the group waits for a resource that nobody offers.", KEYS,
    ),
    Place(
        "*", "ElasticQuota|CompositeElasticQuota|ElasticQuotaTree|ElasticQuotaProfile", "/**", "DRA408",
        "Elastic quotas read pod requests and do not see claims: converted workloads escape this quota.",
        NAMES, whole=True,
    ),
    Place(
        "scheduling.run.ai/*|run.ai/*", "*", "/**", "DRA408",
        "KAI and run:ai count GPUs by rules of their own; check that the release in use counts claims.", whole=True,
    ),
)  # fmt: skip

_AUTOSCALERS: tuple[Place, ...] = (
    Place(
        "*", "*", "/**/capacity.cluster-autoscaler.kubernetes.io~1gpu-type", "DRA407",
        "The cluster autoscaler sizes this node group from zero by the resource name. For claims it needs the devices "
        "of the group told in another way, where its provider supports that.",
    ),
    Place(
        "*", "*", "/**/k8s.io~1cluster-autoscaler~1node-template~1resources~1*", "DRA407",
        "The tag tells the cluster autoscaler what a node of this group will offer and says nothing about claims. "
        "Check whether the autoscaler of this provider scales from zero for DRA.", KEYS, whole=True,
    ),
    # kubernetes-sigs/karpenter#3228, #2384.
    Place(
        "karpenter.sh/*", "*", "/**", "DRA407",
        "Karpenter counts GPUs by the extended resource of its nodes and makes no nodes for pods with claims unless "
        "its DRA support is there and switched on (kubernetes-sigs/karpenter#3228). Check before workloads for this "
        "pool are converted.", whole=True,
    ),
    Place(
        "autoscaling.openshift.io/*", "ClusterAutoscaler", "/spec/resourceLimits/**", "DRA407",
        "resourceLimits.gpus counts GPUs by this name; nodes that offer devices only by DRA do not count here.",
        whole=True,
    ),
    Place(
        "autoscaling.x-k8s.io/*", "ProvisioningRequest|CapacityBuffer", "/**", "DRA407",
        "The autoscaler provisions for the pods that this object describes. Check that it supports claims there.",
        whole=True,
    ),
    Place(
        "eksctl.io/*|cluster.x-k8s.io/*|machine.openshift.io/*|infrastructure.cluster.x-k8s.io/*", "*", "/**", "DRA407",
        "It describes nodes by their extended resource; for claims the DRA driver publishes the devices.",
        NAMES, whole=True,
    ),
)  # fmt: skip

_DEPLOYERS: tuple[Place, ...] = (
    Place(
        "template.openshift.io/*|v1", "Template", "/objects/**", "DRA413",
        "Parameters complete this object. Convert what `oc process` prints, or the object by hand.", KEYS,
    ),
    Place(
        "helm.toolkit.fluxcd.io/*", "HelmRelease", "/spec/values/**", "DRA403",
        "Values of a chart that lives elsewhere, whose templates decide which container asks. Two ways out: the "
        "webhook converts its pods; or a patch in postRenderers puts claims in the limit's place, with a "
        "ResourceClaimTemplate beside this object. Or the chart has a switch for DRA of its own.", NAMES,
    ),
    Place(
        "helm.toolkit.fluxcd.io/*", "HelmRelease", "/spec/postRenderers/**", "DRA409",
        "A patch in postRenderers names the resource; it must change with what the chart prints.",
    ),
    Place(
        "helm.cattle.io/*", "HelmChart|HelmChartConfig", "/spec/**", "DRA403",
        "Values of a chart in the form of k3s and RKE2. Use the chart's own switch for DRA if it has one, or the "
        "webhook.",
    ),
    Place(
        "v1", "ConfigMap|Secret", "/data|stringData/*values*", "DRA403",
        "Values of a chart stand in this string, as Flux takes them by valuesFrom. The chart's templates decide what "
        "becomes of them: use its own switch for DRA if it has one, or the webhook.", TEXT,
    ),
    Place(
        "argoproj.io/*", "Application|ApplicationSet", "/**/helm/**", "DRA403",
        "Values that Argo CD hands to a chart, whose templates decide which container asks. Two ways out: the webhook "
        "converts its pods; or a plugin of Argo CD pipes `helm template` through `gpu2dra render-filter`. Or the chart "
        "has a switch for DRA of its own.",
    ),
    Place(
        "argoproj.io/*", "Application|ApplicationSet", "/**/kustomize/**", "DRA409",
        "A patch that Argo CD hands to Kustomize; it must change together with the base.",
    ),
    Place(
        "fleet.cattle.io/*|skaffold/*", "*", "/**", "DRA403",
        "Values that a deployment tool hands to a chart. Use the chart's own switch for DRA if it has one, or the "
        "webhook.",
        NAMES | {Form.VALUE},
    ),
    Place(
        "kustomize.toolkit.fluxcd.io/*", "Kustomization", "/**", "DRA409",
        "A patch that Flux applies after the build; it must change together with what it patches.",
    ),
    Place(
        f"kustomize.config.k8s.io/*|{FILE}", "Kustomization|Component", "/configMapGenerator|secretGenerator/**",
        "DRA440", "It goes into a ConfigMap or Secret, so its reader alone converts it.",
    ),
    Place(
        f"kustomize.config.k8s.io/*|builtin|{FILE}", "Kustomization|Component|*Transformer|*Generator", "/**", "DRA409",
        "A patch, replacement or variable of this kustomization names the resource. Convert what `kustomize build` "
        "prints, or move the request into the base.",
    ),
    Place(
        FILE, "JSON Patch", "/**", "DRA418",
        "The patch fails, or asks for the GPU a second time, once its target is converted. Convert patch and target "
        "together.",
    ),
    Place(
        _WRAPPERS, "*", "/**", "DRA411",
        "Whole manifests stand inside this object. Take them out, run `gpu2dra convert -` over them and put them "
        "back, with the ResourceClaimTemplate as one more manifest.", KEYS,
    ),
)  # fmt: skip

_READERS: tuple[Place, ...] = (
    # Schemas, policies, alerts, pod autoscaling, configuration: what only reads the name.
    Place(
        "apiextensions.k8s.io/*", "CustomResourceDefinition", "/**", "DRA419",
        "A schema names the resource in a description, default or pattern; nothing here asks for a GPU.", whole=True,
    ),
    Place(
        "operators.coreos.com/*", "ClusterServiceVersion", "/spec/description|customresourcedefinitions/**", "DRA419",
        "The description of an operator names the resource; nothing here asks for a GPU.", TEXT, whole=True,
    ),
    Place(
        _POLICIES, "*", "/**", "DRA414",
        "The policy decides by the extended resource and does not see claims: add a rule for spec.resourceClaims.",
        whole=True,
    ),
    Place(
        _MONITORING, "*", "/**/annotations/**", "DRA419",
        "The text of an alert names the resource; its expression decides.", whole=True,
    ),
    Place(
        _MONITORING, "*", "/**", "DRA414",
        "The rule reads series by this resource name and goes silent for pods with claims.",
    ),
    Place(
        f"grafana.integreatly.org/*|{FILE}", "*Dashboard|Prometheus rules", "/**", "DRA414",
        "It reads series by this resource name, which pods with claims do not have.", whole=True,
    ),
    Place(
        "autoscaling/*|keda.sh/*", "HorizontalPodAutoscaler|ScaledObject|ScaledJob", "/spec/metrics|triggers/**",
        "DRA414", "Pods are scaled by a metric with this resource name, which pods with claims do not have.",
    ),
    Place(
        "autoscaling.k8s.io/*", "VerticalPodAutoscaler", "/**", "DRA414",
        "A VerticalPodAutoscaler bounds the extended resource; it does not know claims.", whole=True,
    ),
    Place(
        "nvidia.com/*", "ClusterPolicy|GPUCluster|NVIDIADriver", "/**", "DRA416",
        "The GPU operator runs the device plugin (ClusterPolicy) or the DRA driver (GPUCluster), never both in a "
        "cluster.",
        whole=True,
    ),
    Place(
        "nfd.k8s-sigs.io/*", "*", "/**", "DRA416",
        "Node Feature Discovery publishes the resource on nodes. Take it out when the nodes move to the DRA driver.",
        whole=True,
    ),
    Place(
        "kubescheduler.config.k8s.io/*", "*", "/**", "DRA416",
        "The scheduler scores or filters nodes by the extended resource; NodeResourcesFit does not score claims up to "
        "Kubernetes 1.37.", whole=True,
    ),
    Place(
        FILE, "device plugin configuration", "/**", "DRA416",
        "Time slicing and MPS of the device plugin do not apply to claims: there, sharing is said in the claim.",
        whole=True,
    ),
    Place(
        FILE, "scheduler configuration", "/**", "DRA416",
        "The configuration of a batch scheduler names the resource; check what it offers for claims.", whole=True,
    ),
    Place(
        "*", "*", "/**", "DRA416",
        "The device plugin's configuration for time slicing or MPS. With DRA, sharing is said in the claim; leave "
        "this as long as the device plugin runs.", TEXT, r"timeSlicing:|\bmps:|migStrategy",
    ),
    Place(
        "*", "*", "/**", "DRA406",
        "Kueue's configuration stands in this string: add the DeviceClass under resources.deviceClassMappings.",
        TEXT, r"config\.kueue\.x-k8s\.io/",
    ),
    Place(
        "*", "*", "/**", "DRA416",
        "A scheduler's configuration stands in this string; check what it offers for claims.",
        TEXT, r"kubescheduler\.config\.k8s\.io/|^actions:|^partitions:",
    ),
    Place(
        "v1", "ConfigMap", "/data/*", "DRA414",
        "A dashboard or rules stand in this ConfigMap; what reads series by this name goes silent for pods with "
        "claims.",
        TEXT, r'"panels"|^groups:',
    ),
)  # fmt: skip

_FILES: tuple[Place, ...] = (
    Place(
        FILE, "helm-unittest suite", "/**", "DRA419",
        "A test of a chart expects the name in what the chart renders; change it with the chart.", whole=True,
    ),
    Place(
        FILE, "workflow", "/**", "DRA512",
        "A CI workflow names the resource: see whether a step of it asks for a GPU.", whole=True,
    ),
    Place(
        FILE, "*", "/x-google-marketplace/**", "DRA512",
        "The schema of a Google Cloud Marketplace application asks for nodes with this resource.", whole=True,
    ),
    Place(
        FILE, "helmfile", "/**", "DRA403",
        "Values that helmfile hands to a chart, whose templates decide which container asks. Two ways out: the webhook "
        "converts its pods; or `gpu2dra render-filter` is the release's postRenderer (postRenderer: gpu2dra, "
        "postRendererArgs: [render-filter]). Or the chart has a switch for DRA of its own.", NAMES | {Form.VALUE},
    ),
    Place(
        FILE, "Helm values", "/**/ollama/gpu/nvidiaResource", "DRA403",
        "ollama's chart has a switch for DRA (resource.k8s.io/v1 since 1.26.0): set ollama.gpu.draEnabled to true here "
        "and take the name out of resources.limits.", NAMES,
    ),
    Place(
        FILE, "Helm values", "/**/nimOperator/*/resources/limits|requests/*", "DRA403",
        "NVIDIA's blueprint has a switch for DRA: nimOperator.draResources.enabled, and draResources of each NIM in "
        "the place of its resources. Once it is on, no NIM keeps its resources: give each of them draResources.", KEYS,
    ),
    Place(
        FILE, "Helm values", "/head|worker/resources/limits|requests/*", "DRA403",
        "If these are values of KubeRay's ray-cluster chart, it takes resourceClaims beside them since 1.6.0, and "
        "num-gpus has to be written into rayStartParams. Else the chart's templates decide.", KEYS,
    ),
    Place(
        FILE, "Helm values", "/additionalWorkerGroups/*/resources/limits|requests/*", "DRA403",
        "KubeRay's ray-cluster chart takes resourceClaims beside them since 1.6.0; num-gpus has to be written into "
        "rayStartParams.", KEYS,
    ),
    Place(
        FILE, "Helm values", "/controllers/*/containers|initContainers/*/resources/limits|requests/*", "DRA403",
        "These look like values of bjw-s' app-template, which takes resourceClaims in the pod of a controller and "
        "resources.claims in a container since 5.0.0.", KEYS,
    ),
    Place(
        FILE, "Helm values", "/**/containers|initContainers/*/resources/limits|requests/*", "DRA403",
        "These look like containers in the values of a chart. If the chart takes resourceClaims as well, convert both "
        "here by hand; else let the webhook convert its pods.", KEYS,
    ),
    Place(
        FILE, "Helm values", "/**", "DRA403",
        "The chart's templates decide what becomes of it. Convert the chart, or use its own switch for DRA if it has "
        "one. Two ways out for one that lives elsewhere: the webhook, or `gpu2dra render-filter` as a post-renderer.",
        NAMES | {Form.VALUE},
    ),
    Place(
        FILE, "document", "/**", "DRA512",
        "The document has no apiVersion and kind: see whether something reads it as a request for a GPU.",
        NAMES, whole=True,
    ),
    Place(
        "chainsaw.kyverno.io/*|kuttl.dev/*", "*", "/**", "DRA411",
        "A test applies or expects objects that name the resource. Change it together with what it tests.", _ASKING,
    ),
)  # fmt: skip

_ELSE: tuple[Place, ...] = (
    Place(
        "apps/*|batch/*|v1", "*List", "/items/**", "DRA401",
        "Only `kind: List` is read item by item. Write `apiVersion: v1` and `kind: List` in its place, then convert.",
        KEYS,
    ),
    Place(
        "apps/*|batch/*|v1|autoscaling/*|policy/*", "*", "/**", "DRA420",
        "The API has no such field here, so nothing asks for a GPU. Move it to resources.limits of the container that "
        "uses the GPU, or remove it.", KEYS,
    ),
    UNKNOWN,
    Place(
        "*", "*", "/**", "DRA402",
        "This custom resource has a field of its own for GPUs. See what its operator offers for DRA, or let the "
        "webhook convert the pods that it makes.", KEYS,
    ),
    Place(
        "*", "*", "/**", "DRA412", "The name stands as a value: look up what reads it and what that offers for DRA.",
        frozenset({Form.NAME, Form.VALUE}),
    ),
    Place(
        "*", "*", "/**", "DRA411",
        "A request stands inside a string. Take the text out, run `gpu2dra convert -` over it and put it back.",
        frozenset({Form.REQUEST}),
    ),
    Place(
        "*", "*", "/**", "DRA418", "A JSON Pointer leads to the request and fails once its target is converted.",
        frozenset({Form.POINTER}),
    ),
    Place(
        "*", "*", "/**", "DRA414", "A query reads series by this name, which pods with claims do not have.",
        frozenset({Form.METRIC}),
    ),
    Place(
        "*", "*", "/**", "DRA419", "The name stands in running text; nothing here asks for a GPU.",
        frozenset({Form.PROSE}),
    ),
)  # fmt: skip

PLACES: tuple[Place, ...] = _NEUTRAL + _QUOTAS + _AUTOSCALERS + OPERATORS + _DEPLOYERS + _READERS + _FILES + _ELSE
