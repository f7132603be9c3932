"""Charts with the interface of public ones, as small as they can be: what they make of the values that claims are in.

Written after their templates, which are not copied: see `gpu2dra_migrate.elsewhere` for where each comes from.
"""

from __future__ import annotations

OLLAMA = {
    "values.yaml": """\
ollama: {gpu: {enabled: false, draEnabled: false, draDriverClass: gpu.nvidia.com, number: 1}}
resources: {limits: {}, requests: {}}
""",
    "templates/all.yaml": """\
{{- $gpu := .Values.ollama.gpu }}
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}
spec:
  template:
    spec:
      containers:
      - name: ollama
        resources:
          {{- $limits := .Values.resources.limits }}
          {{- if $gpu.enabled }}
          {{- if $gpu.draEnabled }}
          claims: [{name: gpu}]
          {{- else }}
          {{- $limits = merge $limits (dict (default "nvidia.com/gpu" $gpu.nvidiaResource) (default 1 $gpu.number)) }}
          {{- end }}
          {{- end }}
          {{- toYaml (mergeOverwrite .Values.resources (dict "limits" $limits)) | nindent 10 }}
      {{- if and $gpu.enabled $gpu.draEnabled }}
      resourceClaims: [{name: gpu, resourceClaimTemplateName: {{ .Release.Name }}}]
      {{- end }}
{{- if and $gpu.enabled $gpu.draEnabled }}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: {deviceClassName: {{ $gpu.draDriverClass }}, count: {{ default 1 $gpu.number }}}
{{- end }}
""",
}

MODELSERVICE = {
    "values.yaml": """\
accelerator: {dra: false, resourceClaimTemplates: {nvidia: {name: nvidia-claim-template, class: gpu.nvidia.com}}}
decode: {create: true, parallelism: {tensor: 1, dataLocal: 1}, containers: [{name: vllm}]}
prefill: {create: true, parallelism: {tensor: 1, dataLocal: 1}, containers: [{name: vllm}]}
""",
    "templates/all.yaml": """\
{{- range $role := list "decode" "prefill" }}
{{- $config := index $.Values $role }}
{{- if $config.create }}
{{- $dra := $.Values.accelerator.dra }}
{{- if and $config.accelerator (hasKey $config.accelerator "dra") }}{{ $dra = $config.accelerator.dra }}{{ end }}
{{- $gpus := mul $config.parallelism.tensor $config.parallelism.dataLocal }}
{{- $claim := $.Values.accelerator.resourceClaimTemplates.nvidia }}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ $.Release.Name }}-{{ $role }}, namespace: {{ $.Release.Namespace }}}
spec:
  template:
    spec:
      containers:
      {{- range $config.containers }}
      - name: {{ .name }}
        resources:
          {{- $own := deepCopy (default dict .resources) }}
          {{- $limits := default dict $own.limits }}
          {{- if not (or $dra (hasKey $limits "nvidia.com/gpu")) }}
          {{- $limits = merge $limits (dict "nvidia.com/gpu" (toString $gpus)) }}
          {{- end }}
          limits: {{ toJson $limits }}
          requests: {{ toJson (default dict $own.requests) }}
          {{- if $dra }}
          claims: [{name: gpu}]
          {{- end }}
      {{- end }}
      {{- with $config.tolerations }}
      tolerations: {{ toJson . }}
      {{- end }}
      {{- if $dra }}
      resourceClaims: [{name: gpu, resourceClaimTemplateName: {{ $claim.name }}-{{ $role }}}]
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: {{ $claim.name }}-{{ $role }}, namespace: {{ $.Release.Namespace }}}
spec:
  spec: {devices: {requests: [{name: nvidia, exactly: {deviceClassName: {{ $claim.class }}, count: {{ $gpus }}}}]}}
      {{- end }}
{{- end }}
{{- end }}
""",
}

RAY_CLUSTER = {
    "values.yaml": """\
head: {rayStartParams: {}, resources: {limits: {cpu: "1"}}, tolerations: [], resourceClaims: []}
worker: {groupName: workers, rayStartParams: {}, resources: {limits: {cpu: "1"}}, tolerations: [], resourceClaims: []}
additionalWorkerGroups: {}
""",
    "templates/_group.tpl": """\
{{- define "group" }}
rayStartParams:
  {{- range $key, $value := .group.rayStartParams }}
  {{ $key }}: {{ $value | quote }}
  {{- end }}
template:
  spec:
    containers:
    - name: {{ .name }}
      resources: {{ toJson .group.resources }}
    {{- with .group.tolerations }}
    tolerations: {{ toJson . }}
    {{- end }}
    {{- with .group.resourceClaims }}
    resourceClaims: {{ toJson . }}
    {{- end }}
{{- end }}
""",
    "templates/all.yaml": """\
apiVersion: ray.io/v1
kind: RayCluster
metadata: {name: {{ .Release.Name }}, namespace: {{ .Release.Namespace }}}
spec:
  headGroupSpec: {{ include "group" (dict "name" "ray-head" "group" .Values.head) | nindent 4 }}
  workerGroupSpecs:
  - groupName: workers
    {{- include "group" (dict "name" "ray-worker" "group" .Values.worker) | nindent 4 }}
  {{- range $name, $group := .Values.additionalWorkerGroups }}
  {{- if not $group.disabled }}
  - groupName: {{ $name }}
    {{- include "group" (dict "name" "ray-worker" "group" $group) | nindent 4 }}
  {{- end }}
  {{- end }}
""",
}

APP_TEMPLATE = {
    "values.yaml": "defaultPodOptions: {}\ncontrollers: {}\n",
    "templates/_pod.tpl": """\
{{- define "pod" }}
{{- $pod := default dict .controller.pod }}
{{- $default := .root.Values.defaultPodOptions }}
{{- range $field := list "initContainers" "containers" }}
{{- with index $.controller $field }}
{{ $field }}:
{{- range $name, $container := . }}
- name: {{ default $name $container.nameOverride }}
  {{- with $container.resources }}
  resources: {{ toJson . }}
  {{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range $option := OPTIONS }}
{{- with default (index $default $option) (index $pod $option) }}
{{ $option }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- end }}
""",
    "templates/all.yaml": """\
{{- range $name, $controller := .Values.controllers }}
---
{{- if eq (default "deployment" $controller.type) "cronjob" }}
apiVersion: batch/v1
kind: CronJob
{{- else }}
apiVersion: apps/v1
kind: {{ get (dict "deployment" "Deployment" "statefulset" "StatefulSet") (default "deployment" $controller.type) }}
{{- end }}
metadata:
  name: {{ $.Release.Name }}-{{ $name }}
  namespace: {{ $.Release.Namespace }}
  labels: {app.kubernetes.io/controller: {{ $name }}}
spec:
  {{- $pod := include "pod" (dict "root" $ "controller" $controller) }}
  {{- if eq (default "deployment" $controller.type) "cronjob" }}
  jobTemplate: {spec: {template: {spec: {{ toJson (fromYaml $pod) }}}}}
  {{- else }}
  template: {spec: {{ toJson (fromYaml $pod) }}}
  {{- end }}
{{- end }}
""",
}


def app_template(*, claims: bool) -> dict[str, str]:
    """Return the app-template that takes `resourceClaims`, or an older one."""
    options = 'list "tolerations" "nodeSelector" "resourceClaims"' if claims else 'list "tolerations" "nodeSelector"'
    return {name: text.replace("OPTIONS", options) for name, text in APP_TEMPLATE.items()}
