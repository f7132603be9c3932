{{/* Names, labels and selectors that more than one object uses. */}}

{{/* At most 55 letters: the longest name of a Service is 63, and `-metrics` comes after it. */}}
{{- define "gpu2dra.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 55 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) | trunc 55 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* Which pods are replicas: the pod of `helm test` has another component. */}}
{{- define "gpu2dra.selectorLabels" -}}
{{- include "gpu2dra.componentLabels" (list . "admission-webhook") -}}
{{- end -}}

{{- define "gpu2dra.testLabels" -}}
{{- include "gpu2dra.componentLabels" (list . "test") -}}
{{- end -}}

{{- define "gpu2dra.componentLabels" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/component: {{ index . 1 }}
app.kubernetes.io/instance: {{ $root.Release.Name | quote }}
app.kubernetes.io/name: {{ default $root.Chart.Name $root.Values.nameOverride | quote }}
{{- end -}}

{{/* What no value may change. */}}
{{- define "gpu2dra.ownLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" }}
{{ include "gpu2dra.selectorLabels" . }}
app.kubernetes.io/part-of: gpu2dra
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/* The labels of an object. Call with (list .), or with (list . more), where those of `more` come before all others. */}}
{{- define "gpu2dra.labels" -}}
{{- $root := index . 0 -}}
{{- $own := include "gpu2dra.ownLabels" $root | fromYaml -}}
{{- merge dict (rest . | first | default dict) $root.Values.commonLabels $own | toYaml -}}
{{- end -}}

{{/*
What stands under `metadata` of an object in a namespace: name, namespace and labels. Call with (list . "suffix"), or
with (list . "suffix" more) as above.
*/}}
{{- define "gpu2dra.metadata" -}}
{{- $root := index . 0 -}}
name: {{ printf "%s%s" (include "gpu2dra.fullname" $root) (index . 1) | quote }}
namespace: {{ $root.Release.Namespace | quote }}
labels:
  {{- include "gpu2dra.labels" (concat (list $root) (slice . 2)) | nindent 2 }}
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
  {{- if eq $namespaces.mode "opt-out" }}
  operator: NotIn
  values: ["false"]
  {{- else }}
  operator: In
  values: ["true"]
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

{{/*
Seconds before the end of a serving certificate at which there is something wrong with its renewal: half of the time that
is kept for it, by the webhook and by cert-manager a third of the certificate's life.
*/}}
{{- define "gpu2dra.certificateNotice" -}}
{{- $certificates := .Values.certificates -}}
{{- if eq $certificates.mode "provided" -}}
{{- $certificates.provided.noticeSeconds | int64 -}}
{{- else if eq $certificates.mode "certManager" -}}
{{- with $certificates.certManager -}}
{{- .renewBefore | empty | ternary (div (include "gpu2dra.seconds" .duration) 6) (div (include "gpu2dra.seconds" .renewBefore) 2) -}}
{{- end -}}
{{- else -}}
{{- div (int64 $certificates.self.leafLifetimeSeconds) 6 -}}
{{- end -}}
{{- end -}}

{{/* The seconds in a duration as Go prints it, such as 1h30m. */}}
{{- define "gpu2dra.seconds" -}}
{{- $total := 0 -}}
{{- $units := dict "h" 3600 "m" 60 "s" 1 -}}
{{- range regexFindAll "[0-9]+[hms]" . -1 -}}
{{- $unit := regexFind "[hms]" . -}}
{{- $total = add $total (mul (trimSuffix $unit .) (get $units $unit)) -}}
{{- end -}}
{{- $total -}}
{{- end -}}
