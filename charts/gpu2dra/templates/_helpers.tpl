{{/* Names, labels and selectors that more than one object uses. */}}

{{- define "gpu2dra.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 63 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 63 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{- define "gpu2dra.selectorLabels" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "gpu2dra.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "gpu2dra.selectorLabels" . }}
app.kubernetes.io/component: admission-webhook
app.kubernetes.io/part-of: gpu2dra
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* What stands under `metadata` of every object: name, namespace and labels. Call with (list . "suffix"). */}}
{{- define "gpu2dra.metadata" -}}
{{- $root := index . 0 -}}
name: {{ include "gpu2dra.fullname" $root }}{{ index . 1 }}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "gpu2dra.labels" $root | nindent 2 }}
{{- end -}}

{{- define "gpu2dra.serviceAccountName" -}}
{{- .Values.serviceAccount.name | default (ternary (include "gpu2dra.fullname" .) "default" .Values.serviceAccount.create) -}}
{{- end -}}

{{- define "gpu2dra.image" -}}
{{- $image := .Values.image -}}
{{- with $image.registry }}{{ . }}/{{ end -}}
{{- $image.repository -}}
{{- if $image.digest }}@{{ $image.digest }}{{ else }}:{{ $image.tag | default .Chart.AppVersion }}{{ end -}}
{{- end -}}

{{/* The namespaces that gpu2dra.skips.SYSTEM_NAMESPACES lists; a test holds the two together. */}}
{{- define "gpu2dra.systemNamespaces" -}}
- dra-driver-nvidia-gpu
- gpu-operator
- gpu-operator-resources
- gpu2dra-system
- kube-node-lease
- kube-public
- kube-system
- nvidia-device-plugin
- nvidia-dra-driver-gpu
- nvidia-gpu-operator
{{- end -}}

{{/*
Which namespaces are sent to the webhook. Those of the cluster, of GPU operators and the release's own are out whatever
their labels: a webhook that its own pods had to pass could never come back after the whole cluster was down. Updates
are about pods that were converted before, which a namespace may have that is not converted any more. Call with
(list . operation).
*/}}
{{- define "gpu2dra.namespaceSelector" -}}
{{- $root := index . 0 -}}
{{- $namespaces := $root.Values.namespaces -}}
{{- $system := include "gpu2dra.systemNamespaces" $root | fromYamlArray -}}
matchExpressions:
- key: kubernetes.io/metadata.name
  operator: NotIn
  values:
  {{- concat $system (list $root.Release.Namespace) $namespaces.excluded | uniq | sortAlpha | toYaml | nindent 2 }}
{{- if eq (index . 1) "CREATE" }}
- key: gpu2dra.dev/convert
  {{- if eq $namespaces.mode "opt-in" }}
  operator: In
  values: ["true"]
  {{- else }}
  operator: NotIn
  values: ["false"]
  {{- end }}
{{- with $namespaces.matchExpressions }}
{{ toYaml . }}
{{- end }}
{{- end }}
{{- end -}}

{{/* Not empty when the webhook itself keeps the caBundle of its configuration right. */}}
{{- define "gpu2dra.writesCaBundle" -}}
{{- $certificates := .Values.certificates -}}
{{- if or (eq $certificates.mode "self") (and (eq $certificates.mode "provided") (not $certificates.provided.caBundle)) -}}
true
{{- end -}}
{{- end -}}
