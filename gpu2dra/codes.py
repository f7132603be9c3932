"""Every code that a finding can have: stable numbers, their severity, and the text behind `gpu2dra explain`.

Hundreds tell where a code comes from: 0 what is converted, 1 notes beside a conversion, 2 left alone on purpose,
3 a request that waits for a person, 4 a legacy name outside a known PodSpec, 5 the file.
"""

from __future__ import annotations

from typing import NamedTuple

from gpu2dra.model import Finding, Severity

_E, _W, _I = Severity.ERROR, Severity.WARNING, Severity.INFO


class Code(NamedTuple):
    """One row of the table: `why` tells what is behind the finding, `todo` what the reader does next."""

    code: str
    name: str
    severity: Severity
    why: str
    todo: str


_ROWS: tuple[Code, ...] = (
    # 0: converted
    Code(
        "DRA001",
        "legacy-request",
        _W,
        "The container asks for GPUs with an extended resource in resources.limits. The device plugin serves "
        "that name, "
        "a DRA driver does not; where both run on one node the same GPU can be handed out twice.",
        "Run `gpu2dra convert`: it moves the request to a ResourceClaimTemplate and gives each container its own "
        "devices.",
    ),
    Code(
        "DRA002",
        "template-renamed",
        _W,
        "The name of a ResourceClaimTemplate made by gpu2dra ends in a digest of its spec, because a template's spec "
        "cannot change once it is in a cluster. This one was edited by hand, so name and spec no longer fit.",
        "Run `gpu2dra convert`: it renames the template and every reference to it. Leave the old template in the "
        "cluster until no ReplicaSet, StatefulSet revision or rollback needs it.",
    ),
    # 1: notes beside a conversion
    Code(
        "DRA101",
        "zero-kept",
        _I,
        "An amount of 0 is deliberate: it says that this container gets no GPU, or unsets the default of a chart.",
        "Nothing. It is left as it is and no claim is made for it.",
    ),
    Code(
        "DRA102",
        "init-sees-more",
        _I,
        "A plain init container borrows whole requests of containers that start after it, because requests cannot be "
        "cut. It may see more devices than it asked for; the device plugin and native extended resources do the same.",
        "Nothing, unless the init container counts the devices that it sees.",
    ),
    Code(
        "DRA103",
        "recreate",
        _I,
        "The pods of an object of this kind that exists keep the old spec; a Job or a Pod refuses the change.",
        "If it is already running, delete it (of a ReplicaSet, its pods) and apply the converted manifest.",
    ),
    Code(
        "DRA104",
        "no-preemption",
        _W,
        "Pods with a positive priority can evict others to get an extended resource. Up to Kubernetes 1.37 the "
        "scheduler "
        "does not preempt for ResourceClaims.",
        "Check that this workload can wait for a free device, or opt it out with the annotation "
        'gpu2dra.dev/convert: "false".',
    ),
    Code(
        "DRA105",
        "template-in-own-file",
        _W,
        "The ResourceClaimTemplate cannot stand in the same file: an object with generateName is created anew each "
        "time and a second `kubectl create` would fail on the template; a JSON file holds one document.",
        "Apply the new file once, before the workload; name it where files are listed (kustomization.yaml, CI).",
    ),
    Code(
        "DRA106",
        "operator-edit",
        _I,
        "The operator of this kind reads the GPU limit for something else and no longer finds it.",
        "Nothing: the value that it would have worked out is written into the field it accepts. Review it.",
    ),
    Code(
        "DRA107",
        "several-claims",
        _W,
        "A container that uses some, but not all requests of a pod, or more than 32 devices or requests in a pod, need "
        "several claims. The ResourceClaim controller of Kubernetes before 1.37 may lose track of a pod with several "
        "claims from templates, which then stays pending (kubernetes/kubernetes#138407).",
        "If such a pod hangs with `ResourceClaim not created yet`, delete it, so that it is made anew; or ask for the "
        "same number of devices in a way that needs one claim.",
    ),
    Code(
        "DRA108",
        "other-claim-unknown",
        _W,
        "The container also uses a claim whose DeviceClass could not be seen from here.",
        "Make sure that it is not the same GPU under another name, else the container would get it twice.",
    ),
    Code(
        "DRA109",
        "visible-devices",
        _I,
        "NVIDIA_VISIBLE_DEVICES is set in the manifest. With DRA the devices come by CDI, which sets it to `void`.",
        "Remove the variable, or make sure that nothing in the container reads it.",
    ),
    Code(
        "DRA110",
        "kueue-quota",
        _W,
        "Kueue counts the extended resource. It counts claims only where deviceClassMappings names their DeviceClass.",
        "Map the DeviceClass to a resource name in Kueue's configuration before the converted workload is queued.",
    ),
    Code(
        "DRA111",
        "operator-version",
        _I,
        "An older release of the operator has a schema without claims and drops them silently.",
        "Make sure that the cluster runs at least the release that the message names.",
    ),
    Code(
        "DRA112",
        "placeholder-amount",
        _W,
        "The amount is a placeholder that is filled in later. It becomes the count of the claim as it stands.",
        "Make sure that it is never filled with 0: the API server stores a count of 0 as 1. A changed value does not "
        "change the name of the template, so a template that is already in the cluster must be deleted first.",
    ),
    Code(
        "DRA113",
        "template-per-namespace",
        _W,
        "The kind is cluster-scoped, but a ResourceClaimTemplate must be in the namespace of the pods that use it.",
        "Apply the template in every namespace whose workloads name this object.",
    ),
    Code(
        "DRA114",
        "train-job-overrides",
        _W,
        "Kubeflow Trainer puts resourcesPerNode of a TrainJob in the place of the runtime's container resources, "
        "claims "
        "included.",
        "Take resourcesPerNode out of the TrainJobs that use this runtime, or let the webhook convert their pods.",
    ),
    # 2: left alone on purpose
    Code(
        "DRA201",
        "opted-out",
        _I,
        'The annotation gpu2dra.dev/convert: "false" says that this workload stays on the extended resource.',
        "Nothing. Remove the annotation to convert it.",
    ),
    Code(
        "DRA202",
        "static-pod",
        _I,
        "Mirror pods and static pods come from the kubelet and may not use claims.",
        "Nothing.",
    ),
    Code(
        "DRA203",
        "node-name",
        _W,
        "spec.nodeName bypasses the scheduler, and only the scheduler allocates claims: the kubelet would refuse "
        "the pod.",
        "Use a nodeSelector on kubernetes.io/hostname in place of nodeName, then convert.",
    ),
    Code("DRA204", "windows", _W, "DRA does not support Windows nodes.", "Leave it on the device plugin."),
    Code(
        "DRA205",
        "system-namespace",
        _I,
        "Namespaces of the cluster itself, of the GPU operators and of gpu2dra are never converted: what runs there "
        "tests or serves the legacy resource.",
        "Nothing.",
    ),
    Code(
        "DRA206",
        "other-scheduler",
        _W,
        "The pod names a scheduler that is not on the list of schedulers known to allocate claims.",
        "Find out whether that scheduler supports DRA, or opt the workload out.",
    ),
    Code(
        "DRA207",
        "ignored-object",
        _I,
        "A comment in the file ignores the request of another container of this object, and objects convert as a "
        "whole: "
        "a pod with both kinds of requests would need nodes that serve both.",
        "Nothing. Remove the comment to convert the object.",
    ),
    Code(
        "DRA208",
        "policy-skip",
        _I,
        "A rule of the conversion policy leaves this resource alone, and objects convert as a whole.",
        "Nothing. Change the rule to convert it.",
    ),
    Code(
        "DRA209",
        "policy-preemption",
        _W,
        "Pods with a positive priority can evict others to get an extended resource. Up to Kubernetes 1.37 the "
        "scheduler does not preempt for ResourceClaims. The policy (preemption: skip) leaves such pods alone.",
        "Nothing, or set preemption: warn in the policy to convert them without preemption.",
    ),
    # 3: waits for a person
    Code(
        "DRA301",
        "bad-amount",
        _E,
        "An amount of an extended resource is a whole number, not negative. The API server refuses anything else.",
        "Correct the amount.",
    ),
    Code(
        "DRA302",
        "request-differs",
        _E,
        "A request for an extended resource must equal its limit. The API server refuses anything else.",
        "Make them equal, or remove the request.",
    ),
    Code(
        "DRA303",
        "request-without-limit",
        _E,
        "An extended resource needs a limit; a request alone is refused by the API server.",
        "Add the limit, or remove the request.",
    ),
    Code(
        "DRA304",
        "too-many-devices",
        _E,
        "A ResourceClaim holds at most 32 devices, and a container's request cannot be cut over several claims.",
        "Ask for at most 32 devices in one container.",
    ),
    Code(
        "DRA305",
        "foreign-fraction",
        _W,
        "Another system (HAMi, Volcano vGPU, KubeVirt, run:ai) cuts the GPU; a fraction must not silently become "
        "a card.",
        "Decide which device replaces the fraction. Until then the pod is left as it is.",
    ),
    Code(
        "DRA306",
        "shared-gpu",
        _W,
        "A `.shared` resource is a replica of a device (time slicing or MPS) and does not say how large the share is.",
        "Decide which device replaces it. Until then the pod is left as it is.",
    ),
    Code(
        "DRA307",
        "claim-and-limit",
        _E,
        "The container holds a claim for the same DeviceClass and a limit: it would get its GPUs twice.",
        "Remove the limit if the claim replaces it, or remove the claim.",
    ),
    Code(
        "DRA308",
        "pod-level-resources",
        _E,
        "Pod-level spec.resources can hold neither extended resources nor claims.",
        "Move the limit to the container that uses it.",
    ),
    Code(
        "DRA309",
        "ephemeral-container",
        _E,
        "Ephemeral containers can hold neither resources nor claims.",
        "Remove the limit.",
    ),
    Code(
        "DRA310",
        "templated-amount",
        _W,
        "The amount is an expression that another tool fills in later, so it cannot be checked or moved.",
        "Write the amount as a number, or convert what the tool puts out (pipe it through `gpu2dra convert -`).",
    ),
    Code(
        "DRA312",
        "kind-without-claims",
        _W,
        "The schema of this kind, or of this version of it, holds no claims: they would be dropped silently or "
        "refused.",
        "Use a version that holds them if there is one, or let the webhook convert its pods.",
    ),
    Code(
        "DRA313",
        "malformed",
        _E,
        "A field that leads to the containers does not have the type that the API gives it.",
        "Correct the manifest; the API server would refuse it too.",
    ),
    Code(
        "DRA314",
        "amount-changed",
        _W,
        "The container is already served by a claim of another amount. The resources of a running pod cannot change.",
        "Recreate the pod with the new amount.",
    ),
    Code(
        "DRA315",
        "operator-reads-limit",
        _W,
        "The operator of this kind reads the GPU limit for something else and has no other field for it.",
        "Leave it on the extended resource, or let the webhook convert its pods: the operator reads its own object.",
    ),
    Code(
        "DRA316",
        "placeholder-in-init",
        _W,
        "Init containers share devices with the containers that start after them; with a placeholder for an amount "
        "nobody can say how many.",
        "Write the amounts of this pod as numbers.",
    ),
    Code(
        "DRA317",
        "too-large-pod",
        _W,
        "A converted pod carries in an annotation what was taken off it, and the API server takes no more than 256 KiB "
        "of annotations. A pod with hundreds of GPU requests is therefore left as it is.",
        "Split the pod: no node offers that many devices.",
    ),
    # 4: a legacy name outside a known PodSpec
    Code(
        "DRA401",
        "unknown-kind",
        _W,
        "This kind is not in the table of kinds, so nobody knows whether its schema holds claims.",
        "Convert it by hand if it does, or let the webhook convert its pods.",
    ),
    Code(
        "DRA402",
        "custom-resource-field",
        _W,
        "This custom resource has a field of its own for the GPU and builds the pod itself.",
        "See the message for what this operator offers; the webhook converts the pods that it makes.",
    ),
    Code(
        "DRA403",
        "helm-values",
        _W,
        "Values of a Helm chart: what they become is decided by the chart's templates.",
        "Convert the chart, or use its own switch for DRA if it has one. Two ways out for one that lives elsewhere: "
        "the webhook, or `gpu2dra render-filter` as a post-renderer.",
    ),
    Code(
        "DRA404",
        "resource-quota",
        _W,
        "A ResourceQuota on the extended resource does not count claims (Kubernetes 1.34 and 1.35; later ones "
        "count them "
        "where the DeviceClass carries extendedResourceName).",
        "Add <class>.deviceclass.resource.k8s.io/devices beside it, e.g. "
        "gpu.nvidia.com.deviceclass.resource.k8s.io/devices.",
    ),
    Code(
        "DRA405",
        "limit-range",
        _E,
        "A LimitRange on the extended resource puts the limit back on converted pods or refuses them.",
        "Remove the resource from the LimitRange before workloads of its namespace are converted.",
    ),
    Code(
        "DRA406",
        "kueue",
        _W,
        "Kueue quota on the extended resource does not count claims unless deviceClassMappings names their "
        "DeviceClass.",
        "Add the mapping to Kueue's configuration, and the mapped name to coveredResources.",
    ),
    Code(
        "DRA407",
        "autoscaler",
        _W,
        "A node autoscaler decides by the extended resource; pods with claims do not ask for it.",
        "Check that the autoscaler supports DRA and is told so; Karpenter ignores claims by default.",
    ),
    Code(
        "DRA408",
        "queue-capacity",
        _W,
        "A queue of a batch scheduler counts the extended resource and does not see claims.",
        "Check what the scheduler offers for DRA before workloads of this queue are converted.",
    ),
    Code(
        "DRA409",
        "kustomize-patch",
        _W,
        "A Kustomize patch sets the request and was left as it is: a patch converts together with all that it patches, "
        "in every kustomization that uses it, or not at all.",
        "See what is told about the kustomization itself; when that is solved, convert the whole tree in one run.",
    ),
    Code(
        "DRA410",
        "overlay-touches-base",
        _W,
        "A kustomization that takes in this object does not build what it should when the object is converted, so the "
        "object stays as it is.",
        "See what is told about the kustomization; when that is solved, convert base and overlays in one run.",
    ),
    Code(
        "DRA411",
        "embedded-manifest",
        _W,
        "A manifest stands inside a string (a ConfigMap, a script), where its reader alone knows what becomes of it.",
        "Convert it by hand: take the text out, run `gpu2dra convert -` over it and put it back.",
    ),
    Code(
        "DRA412",
        "name-as-value",
        _W,
        "The resource name stands as a value: some program is told which resource to ask for or to look at.",
        "Look up what reads it and what it offers for DRA.",
    ),
    Code(
        "DRA413",
        "openshift-template",
        _W,
        "The objects of an OpenShift Template are completed by parameters when it is processed.",
        "Convert what `oc process` prints.",
    ),
    Code(
        "DRA414",
        "policy-or-alert",
        _W,
        "A policy, an alert rule or a dashboard names the extended resource and goes silent for converted workloads.",
        "Add the same rule for resourceClaims.",
    ),
    Code(
        "DRA415",
        "spark-gpu",
        _W,
        "SparkApplication asks for GPUs by driver.gpu or executor.gpu, which can only name an extended resource.",
        "Use a pod template file with claims, or let the webhook convert its pods.",
    ),
    Code(
        "DRA416",
        "scheduler-configuration",
        _W,
        "The configuration of a scheduler or of a cluster component names the extended resource.",
        "Check that it treats claims as it should before workloads are converted.",
    ),
    Code(
        "DRA417",
        "notebook-spawner",
        _W,
        "JupyterHub's KubeSpawner takes GPUs by extra_resource_limits.",
        "Use kubespawner_override with extra_pod_config.resourceClaims and extra_container_config.resources.claims, or "
        "the webhook. (extra_container_config.resources replaces the CPU and memory limits: repeat them there.)",
    ),
    Code(
        "DRA418",
        "json-patch",
        _W,
        "A JSON Patch names the extended resource by its pointer; it fails once the request is gone from its target.",
        "Convert patch and target together.",
    ),
    Code(
        "DRA419",
        "schema-or-example",
        _I,
        "A schema, a description or an example text names the resource; nothing asks for a GPU here.",
        "Nothing.",
    ),
    Code(
        "DRA420",
        "misplaced-request",
        _W,
        "The name stands where the API of this kind has no field for it: the API server drops it, and nothing "
        "asks for a "
        "GPU.",
        "Move it to resources.limits of the container that uses the GPU, or remove it.",
    ),
    Code(
        "DRA421",
        "chart-unreadable",
        _E,
        "Chart.yaml, or a template of the chart, cannot be read, so nothing of the chart was looked at.",
        "Correct the file that the message names.",
    ),
    Code(
        "DRA422",
        "chart-does-not-render",
        _W,
        "Helm does not render the chart with these values, so nobody can say what they ask for and nothing is proven "
        "for them.",
        "Give values with which it renders by --values FILE, or put them into the chart's ci folder.",
    ),
    Code(
        "DRA423",
        "proven",
        _I,
        "Rendering the converted chart gives, object by object, what converting the rendered chart gives; with "
        "dra.enabled=false it gives the bytes from before. Of a kustomization: building it converted gives what "
        "converting its build gives.",
        "Nothing.",
    ),
    Code(
        "DRA424",
        "packed-chart",
        _W,
        "A packed chart (.tgz) asks for a GPU. It is somebody else's file, and not edited.",
        "Unpack it into the charts folder, set its own switch for DRA if it has one, or let the webhook convert its "
        "pods.",
    ),
    Code(
        "DRA425",
        "template-cannot-move",
        _W,
        "The template cannot move: a definition in it has the name of another one, so that moving it may change which "
        "one counts, or the file that it would become exists, or a link leads to it from elsewhere, or a kustomization "
        "takes it as a manifest.",
        "Rename one of them, or copy it, then convert.",
    ),
    Code(
        "DRA426",
        "not-inline",
        _W,
        "With --helm-style inline claims are written into templates of few patterns: one workload, and one container "
        "that asks by a literal key or takes its resources from the values as a whole. This template is none of them.",
        "Convert the chart without --helm-style inline, which takes templates of every shape, or edit this one by "
        "hand.",
    ),
    Code(
        "DRA427",
        "own-dra-values",
        _W,
        "The chart has values of its own under `dra`, where a converted chart has its switch.",
        "Let the chart's own templates make the claims, or let the webhook convert its pods.",
    ),
    Code(
        "DRA428",
        "policy-in-chart",
        _W,
        "A converted chart decides when it renders, by the built-in policy; other policies are not in it.",
        "Convert the chart without a policy, or let the webhook, which has the policy, convert its pods.",
    ),
    Code(
        "DRA429",
        "square",
        _W,
        "The square does not commute: the converted template would not render what converting its output gives. "
        "Nothing of it was written.",
        "See the message. Other templates of the chart convert all the same; for this one there is the webhook.",
    ),
    Code(
        "DRA430",
        "switch-not-in-values",
        _I,
        "The chart converts, and `dra` (enabled, deviceClassName, target) was not added to values.yaml or its schema. "
        "It works when somebody sets it.",
        "Nothing; or add `dra: {enabled: auto}` by hand.",
    ),
    Code(
        "DRA431",
        "chart-not-proven",
        _W,
        "The template converts, and with no values that are here does the chart render, so nothing was compared. With "
        "the switch off it renders as before.",
        "Give values with which the chart renders by --values FILE.",
    ),
    Code(
        "DRA432",
        "own-switch",
        _I,
        "The chart has a switch of its own for Dynamic Resource Allocation. It is used where it gives each container "
        "what a conversion gives.",
        "Nothing; the message says what became of it.",
    ),
    Code(
        "DRA433",
        "no-helm",
        _W,
        "There is no helm, so charts were not rendered: templates that name a legacy resource or may take one from the "
        "values convert, which is right by construction, and nothing else is known about them.",
        "Put helm (3 or 4) on PATH, or name it by GPU2DRA_HELM, and run again.",
    ),
    Code(
        "DRA434",
        "value-without-workload",
        _W,
        "A values file names a legacy resource, and no template of the chart puts it into a workload: an operator may "
        "read it, or a template makes something else of it.",
        "Look up what reads the value, and what that offers for DRA.",
    ),
    Code(
        "DRA435",
        "kustomize-request",
        _W,
        "A Kustomize patch sets, changes or removes a GPU request. It moves together with the resources that it "
        "patches: the patch then sets the claims, and a new amount gets a ResourceClaimTemplate of its own.",
        "Run `gpu2dra convert` on the tree that holds base and overlays. It builds every kustomization before and "
        "after, and takes back what is not the same.",
    ),
    Code(
        "DRA436",
        "kustomize-missing",
        _I,
        "Neither kustomize nor kubectl is on PATH. Only resources that no patch, prefix or plugin touches convert.",
        "Install kustomize (or name it with GPU2DRA_KUSTOMIZE) and run it again.",
    ),
    Code(
        "DRA437",
        "build-differs",
        _W,
        "Converted, this kustomization would not build what converting its build gives. Nothing of it was changed.",
        "Read what differs. Often a patch can be moved or split so that one patch sets the request of one object; else "
        "convert by hand, or use the webhook for these workloads.",
    ),
    Code(
        "DRA438",
        "build-fails",
        _I,
        "kustomize cannot build this as it stands, so nothing about it can be proven.",
        "Make it build, or convert by hand what is left.",
    ),
    Code(
        "DRA439",
        "remote-base",
        _I,
        "A base, component or resource is not in this repository. Nothing is fetched, so nothing is proven.",
        "Convert it where it lives, then refer to the converted version; or copy it in for this run.",
    ),
    Code(
        "DRA440",
        "generated-content",
        _W,
        "A manifest goes into a ConfigMap or Secret by a generator. Its reader alone knows what becomes of it.",
        "Find out whether what reads it creates Pods with resourceClaims, then convert the file by hand.",
    ),
    Code(
        "DRA441",
        "replaced-amount",
        _W,
        "A replacement or variable of Kustomize reads or writes the amount. After a conversion it is the count of a "
        "request in a ResourceClaimTemplate, whose name depends on it.",
        "Write the amount where it is used, once for each overlay, and convert again.",
    ),
    Code(
        "DRA442",
        "kustomize-plugin",
        _I,
        "The kustomization uses transformers, generators or validators, which can be programs. They are never run.",
        "Build it yourself and convert what it prints, or convert the kustomization by hand.",
    ),
    Code(
        "DRA443",
        "kustomize-helm-chart",
        _I,
        "The kustomization inflates a Helm chart, which needs the network and a plugin. It is not built.",
        "Convert the chart, or what `kustomize build --enable-helm` prints.",
    ),
    Code(
        "DRA445",
        "patch-layout",
        _W,
        "The text of a patch or kustomization cannot be edited without touching more than it must.",
        "Write this part in the usual block style (`patch: |-`), then convert.",
    ),
    Code(
        "DRA446",
        "claim-and-limit",
        _E,
        "A container of the build asks for GPUs twice: with a claim and with the extended resource.",
        "Remove the limit where it comes from: a patch, a component or a generated file.",
    ),
    Code(
        "DRA447",
        "template-missing",
        _E,
        "A Pod of the build names a ResourceClaimTemplate that the build does not make under this name in its "
        "namespace, so it would wait for ever.",
        "List the file of the template in `resources`; where names get a prefix or suffix, see that `configurations` "
        "names a nameReference for ResourceClaimTemplate.",
    ),
    Code(
        "DRA448",
        "template-name-unfit",
        _E,
        "A template of the build was changed by hand or by a patch, and its name says another digest. The spec of one "
        "that is in a cluster cannot change.",
        "Run `gpu2dra convert` on its file, or let the overlay bring a template of its own.",
    ),
    Code(
        "DRA449",
        "stand-in",
        _I,
        "A generator reads a file that is not in the repository, such as a secret. The builds before and after had the "
        "same stand-in for it.",
        "Nothing, unless what the file holds decides about GPUs.",
    ),
    Code(
        "DRA450",
        "chart-version",
        _W,
        "The chart of this release can say claims in its values, but since a later version than the one that the "
        "release names, or the version cannot be seen from here.",
        "Name at least that version and convert again, or let the webhook convert its pods.",
    ),
    Code(
        "DRA451",
        "chart-values",
        _W,
        "The chart of this release can say claims in its values, but not these: they would give other devices than the "
        "limits do, or it is not clear what the values ask for.",
        "See the message, and change the values by hand; or let the webhook convert its pods.",
    ),
    Code(
        "DRA452",
        "template-beside-release",
        _W,
        "The chart of this release takes claims, but somebody else has to bring the ResourceClaimTemplate, and it has "
        "no place beside this object.",
        "Bring the template to the release's namespace by another way, or let the webhook convert its pods.",
    ),
    Code(
        "DRA453",
        "chart-is-here",
        _I,
        "The values are for a chart of this repository. A converted chart takes the same values and renders claims.",
        "Nothing: convert the chart.",
    ),
    # 5: the file
    Code(
        "DRA501",
        "broken-yaml",
        _E,
        "The file is not valid YAML, so nothing in it was looked at.",
        "Correct it at the place named.",
    ),
    Code("DRA502", "not-utf8", _E, "Kubernetes reads manifests as UTF-8; this file is not.", "Save it as UTF-8."),
    Code(
        "DRA503",
        "too-large",
        _E,
        "The file is larger than the limit, as rendered bundles and dumps are.",
        "Raise --max-size, or exclude the file in .gpu2dra.yaml.",
    ),
    Code(
        "DRA504",
        "outside-tree",
        _I,
        "A symbolic link that leads out of the tree is not followed.",
        "Name the file itself on the command line.",
    ),
    Code(
        "DRA505",
        "proof-failed",
        _E,
        "The converted text did not pass one of the checks that stand between a conversion and your file, so "
        "nothing was written.",
        "This is a bug in gpu2dra: please report it with the file.",
    ),
    Code(
        "DRA506",
        "shared-anchor",
        _W,
        "The request stands in a block that other places take over by an alias; changing it would change them too.",
        "Write the block out where it is used, then convert.",
    ),
    Code(
        "DRA507",
        "merge-key",
        _W,
        "The request comes in by a merge key (<<), so there is no text of its own to change.",
        "Write the merged block out, then convert.",
    ),
    Code(
        "DRA508",
        "duplicate-key",
        _W,
        "A key stands twice in one map. Kubernetes takes the last one and strict tools refuse the file.",
        "Remove one of them, then convert.",
    ),
    Code(
        "DRA509",
        "template-file",
        _W,
        "The file is a template of another tool (Helm, Jinja, Go templates) and becomes YAML only when it is rendered.",
        "Convert what the tool prints, or let the webhook convert the pods.",
    ),
    Code("DRA510", "unreadable", _E, "The file or folder could not be read.", "Check the path and its permissions."),
    Code(
        "DRA511",
        "cannot-place-template",
        _E,
        "There is no place in this file where a new document can stand.",
        "See the message; put the template that `gpu2dra diff` would make into a file of its own by hand.",
    ),
    Code(
        "DRA512",
        "not-a-manifest",
        _W,
        "The file names a legacy resource but holds no Kubernetes object: it has no apiVersion and kind.",
        "See whether something reads it as a request for a GPU.",
    ),
    Code(
        "DRA513",
        "layout",
        _W,
        "The request is written in a way that cannot be edited in place: an explicit key (`? key`), a placeholder "
        "inside braces, where it would no longer parse, or lines that end in a carriage return alone.",
        "Write this part in the usual block style, then convert.",
    ),
    Code(
        "DRA599",
        "internal-error",
        _E,
        "gpu2dra itself failed on this file. Nothing was written.",
        "This is a bug: please report it with the file. GPU2DRA_DEBUG=1 shows where it happened.",
    ),
)

CODES: dict[str, Code] = {row.code: row for row in _ROWS}


def finding(code: str, path: str, message: str, line: int = 0) -> Finding:
    """Return a finding of `code` with the severity of the table; raise KeyError for a code that is not in it."""
    return Finding(code, path, message, CODES[code].severity, line)
