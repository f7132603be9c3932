"""Rows for kinds whose operator builds the pods: model servers, training, virtual machines, notebooks.

Each names what that operator offers for DRA, as its published schema, release notes or issue threads say.
"""

from __future__ import annotations

from gpu2dra.places.row import KEYS, NAMES, Place

_WEBHOOK = "The webhook can convert its pods."
_CONTAINER = "/**/containers|initContainers|steps|sidecars/*/resources|computeResources/limits|requests/*"

OPERATORS: tuple[Place, ...] = (
    # Model servers.
    Place(
        "serving.kserve.io/*", "InferenceService", "/spec/predictor|transformer|explainer/**", "DRA402",
        "KServe 0.15 and later take claims here by hand, in Standard mode (Knative refuses them): resourceClaims of "
        "the component (spec.predictor.resourceClaims) and resources.claims in place of the limit. Multi-node "
        "runtimes read their GPU count from the limit. " + _WEBHOOK, KEYS,
    ),
    # kserve/kserve#5352.
    Place(
        "serving.kserve.io/*", "LLMInferenceService", "/**", "DRA401",
        "KServe 0.20 and later make the claim from the annotations serving.kserve.io/dra-device-class and "
        "serving.kserve.io/dra-gpu-count; or write resourceClaims and resources.claims into this pod spec.", KEYS,
    ),
    Place(
        "serving.kserve.io/*", "LLMInferenceServiceConfig", "/**", "DRA401",
        "LLMInferenceServices are merged over this base, and claims of both would add up. Convert the "
        "LLMInferenceServices and take the GPU out here.", KEYS,
    ),
    Place(
        "serving.kserve.io/*", "InferenceGraph", "/**", "DRA402",
        "KServe builds the router of a graph itself, and the graph has no pod-level claims. " + _WEBHOOK, KEYS,
    ),
    # kserve/kserve#5828.
    Place(
        "serving.kserve.io/*", "ServingRuntime|ClusterServingRuntime", "/**", "DRA312",
        "The pod of a serving runtime takes resourceClaims only from KServe 0.21 on; an older CRD drops them "
        "silently. " + _WEBHOOK, KEYS,
    ),
    Place(
        "ome.io/*", "*", "/**", "DRA402",
        "OME builds the pod from runner, engine and decoder and has no field for claims that is known. "
        + _WEBHOOK, NAMES,
    ),
    Place(
        "apps.nvidia.com/*", "NIMService|NIMPipeline|NIMBuild", "/**", "DRA402",
        "The NIM operator takes claims by draResources (claimCreationSpec makes the template; a technology preview): "
        "use it in place of this limit.", KEYS,
    ),
    Place(
        "apps.nvidia.com/*", "*", "/**", "DRA402",
        "The NIM operator builds this pod; draResources is known of NIMService, NIMPipeline and NIMBuild only. "
        + _WEBHOOK,
        NAMES,
    ),
    Place(
        "llmaz.io/*", "OpenModel", "/**", "DRA402",
        "llmaz copies the limits of this flavor into the pods that serve the model and has no field for claims. "
        + _WEBHOOK, KEYS,
    ),
    Place(
        "inference.llmaz.io/*", "*", "/**", "DRA402",
        "llmaz builds a LeaderWorkerSet from it and has no field of its own for claims. " + _WEBHOOK, KEYS,
    ),
    # ai-dynamo/dynamo#3548, #13465.
    Place(
        "nvidia.com/*", "Dynamo*", "/**", "DRA402",
        "Dynamo takes claims by extraPodSpec.resourceClaims and by resources.claims of its main container. Its "
        "planner counted GPUs by the limit alone until ai-dynamo/dynamo#13465.", NAMES,
    ),
    Place(
        "machinelearning.seldon.io/*|mlops.seldon.io/*", "*", "/**", "DRA401",
        "Seldon builds the pod from this spec; whether its CRD keeps resourceClaims depends on the release. "
        + _WEBHOOK,
        KEYS,
    ),
    # defilantech/LLMKube#750.
    Place(
        "inference.llmkube.dev/*", "*", "/**", "DRA402",
        "LLMKube takes claims by spec.hardware.gpu.resourceClaims of the Model.", NAMES,
    ),
    Place(
        "sagemaker.amazonaws.com/*|inference.sagemaker.aws.amazon.com/*", "*", "/**", "DRA402",
        "HyperPod's operators build the pods and count GPUs by this name; no field for claims is known. " + _WEBHOOK,
        NAMES,
    ),
    Place(
        "skyhook.nvidia.com/*", "*", "/**", "DRA412",
        "Skyhook looks for GPU pods by this name before it touches a node; pods with claims do not carry it.",
        whole=True,
    ),
    # Training, batch and pipelines.
    Place(
        "trainer.kubeflow.org/*", "TrainJob", "/spec/trainer/**", "DRA402",
        "A TrainJob has no place for pod-level resourceClaims, and resourcesPerNode replaces the resources of its "
        "runtime, claims included. Put the claim into the TrainingRuntime, set spec.trainer.numProcPerNode to a "
        "number, and remove the GPU here.", KEYS,
    ),
    Place(
        "kubeflow.org/*", "Notebook", "/**", "DRA312",
        "The published CRD of Notebook holds no resourceClaims and drops them silently. " + _WEBHOOK, KEYS,
    ),
    Place(
        "kubeflow.org/*", "MXJob", "/**", "DRA312",
        "Its last schema (training-operator 1.8) holds no claims that a container could name by request. "
        + _WEBHOOK, KEYS,
    ),
    Place(
        "flow.volcano.sh/*", "JobFlow", "/spec/flows/*/patch/**", "DRA409",
        "A flow patches a JobTemplate with this request. Convert the JobTemplate and take the GPU out of the patch.",
        KEYS,
    ),
    Place(
        "kubeflow.org/*", "Experiment", "/spec/trialTemplate/**", "DRA411",
        "The trial's manifest stands inside the Experiment: convert it by hand and create its template beforehand.",
        KEYS,
    ),
    # kubeflow/spark-operator#2141 (pod templates, release 2.1) and #2858.
    Place(
        "sparkoperator.k8s.io/*", "*", "/**/driver|executor/template/**", "DRA415",
        "Spark's pod template can name claims (kubeflow/spark-operator#2858), but the Spark release decides what of "
        "it reaches the pods: try it, or let the webhook convert them.", KEYS,
    ),
    Place(
        "sparkoperator.k8s.io/*", "*", "/**/batchSchedulerOptions/**", "DRA415",
        "batchSchedulerOptions.resources tells the batch scheduler what the application needs; claims do not count "
        "there.",
    ),
    Place(
        "sparkoperator.k8s.io/*", "*", "/**", "DRA415",
        "Spark's own fields for GPUs can only name an extended resource. Claims would go into driver.template and "
        "executor.template (spark-operator 2.1 and later). " + _WEBHOOK,
    ),
    # argoproj/argo-workflows#16587.
    Place(
        "argoproj.io/*", "Workflow|CronWorkflow|WorkflowTemplate|ClusterWorkflowTemplate", "/**/podSpecPatch", "DRA411",
        "podSpecPatch sets the request by a string. Write resourceClaims and claims into the patch instead.",
    ),
    Place(
        "argoproj.io/*", "Workflow|CronWorkflow|WorkflowTemplate|ClusterWorkflowTemplate", "/**", "DRA312",
        "Argo Workflows 4.1.0 and later take resourceClaims in a template, beside resources.claims of its container: "
        "write both by hand. Before that, write the claim with podSpecPatch. " + _WEBHOOK, KEYS,
    ),
    Place(
        "tekton.dev/*", "*", "/**", "DRA312",
        "Tekton's podTemplate has no resourceClaims, so the claims of a step would name one that its pod does not "
        "have. " + _WEBHOOK, KEYS,
    ),
    Place(
        "serving.knative.dev/*", "*", "/**", "DRA312",
        "Knative Serving refuses resources.claims (knative/serving#15332). " + _WEBHOOK, KEYS,
    ),
    Place(
        "extensions/*", "Deployment|DaemonSet|ReplicaSet", "/**", "DRA312",
        "This version has not been served since Kubernetes 1.16. Move it to apps/v1, then convert.", KEYS,
    ),
    # Virtual machines. kubevirt/kubevirt#15039, kubevirt/user-guide#1008.
    Place(
        "kubevirt.io/*|hco.kubevirt.io/*", "KubeVirt|HyperConverged", "/**", "DRA402",
        "permittedHostDevices is for device plugins. With DRA the driver publishes the devices and KubeVirt needs no "
        "entry.", whole=True,
    ),
    Place(
        "kubevirt.io/*|*.kubevirt.io/*", "*", "/**", "DRA402",
        "KubeVirt 1.6 and later take claims for virtual machines: spec.resourceClaims, and claimName and requestName "
        "in place of deviceName (gate GPUsWithDRA, on by default from 1.9).", NAMES,
    ),
    # Notebooks and dashboards. opendatahub-io/opendatahub-operator#4065.
    Place(
        "dashboard.opendatahub.io/*|infrastructure.opendatahub.io/*", "*", "/**", "DRA412",
        "The identifier of the profile becomes the limit of notebooks and model servers. For claims a HardwareProfile "
        "needs spec.dra.resourceClaimTemplateName, which Open Data Hub has had since September 2026.", NAMES,
    ),
    Place(
        "opendatahub.io/*", "OdhDashboardConfig", "/**", "DRA412",
        "The dashboard offers this resource to notebooks and model servers. Change it with the hardware profiles.",
        whole=True,
    ),
    Place(
        "*", "*", "/**/annotations/opendatahub.io~1recommended-accelerators", "DRA412",
        "Open Data Hub's dashboard offers profiles with this identifier here. Change it with the profiles.",
    ),
    Place(
        "*", "*", "/**/extra_resource_limits|extra_resource_guarantees/*", "DRA417",
        "KubeSpawner puts the name into limits. Use extra_pod_config.resourceClaims and "
        "extra_container_config.resources.claims (repeat CPU and memory there), or the webhook.", KEYS,
    ),
    Place(
        "*", "*", "/**/extraResource/limits|guarantees/*", "DRA417",
        "The JupyterHub chart hands singleuser.extraResource to KubeSpawner as limits. Use singleuser.extraPodConfig "
        "for resourceClaims and KubeSpawner's extra_container_config for claims, or the webhook.", KEYS,
    ),
    Place(
        "*", "*", "/**/profileList/*/description|display_name", "DRA419",
        "The text that JupyterHub shows for a profile names the resource; kubespawner_override decides.",
    ),
)  # fmt: skip

UNKNOWN = Place(
    "*", "*", _CONTAINER, "DRA401",
    "The kind is not in the table of kinds. If its schema holds resourceClaims and resources.claims, convert it "
    "by hand; "
    "else let the webhook convert its pods. A policy can add the kind.", KEYS,
)  # fmt: skip
"""A PodSpec in an object of which nothing is known."""


def other_version(api: str, kind: str, known: tuple[str, ...]) -> Place:
    """Return the row for a kind that is in the table of kinds, but at `known` versions and not at that of `api`."""
    group = api.rpartition("/")[0]
    versions = " or ".join(f"{group}/{version}" if group else version for version in known)
    return Place(
        api, kind, _CONTAINER, "DRA312",
        f"The schema of {api} is not known to hold claims. Move it to {versions}, then convert. " + _WEBHOOK, KEYS,
    )  # fmt: skip
