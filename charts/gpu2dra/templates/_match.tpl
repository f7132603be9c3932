{{/*
The matchConditions: CEL that the API server evaluates before it calls the webhook, so that only pods with a legacy
request depend on it. An expression that fails would make the API server refuse the pod (failurePolicy Fail), hence
`?.` and `[?…]` before everything that may be absent, and a look for null where a Go struct may leave one.
*/}}

{{/*
Whether `name` is a resource that gets converted: whole GPUs and MIG slices, and the shares and fractions of a GPU that
a rule of the policy has a device for. For those a rule has to spell the name out, as in gpu2dra.policy.
*/}}
{{- define "gpu2dra.cel.isLegacy" -}}
{{- $named := list -}}
{{- range dig "rules" list .Values.policy -}}
{{- if hasKey . "device" -}}
{{- range dig "match" "resources" list . -}}
{{- if and (regexMatch "^(nvidia\\.com|volcano\\.sh)/[A-Za-z0-9._-]+$" .) (ne . "nvidia.com/gpu") -}}
{{- $named = append $named (squote .) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
name == 'nvidia.com/gpu' || name.startsWith('nvidia.com/mig-') && !name.endsWith('.shared')
{{- with $named | uniq | sortAlpha }} || name in [{{ join ", " . }}]{{ end -}}
{{- end -}}

{{/* Some container or init container asks for a GPU, in limits or in requests. "0" is no request (it stays as it is). */}}
{{- define "gpu2dra.cel.asksForGpu" -}}
[?object.spec.?containers, ?object.spec.?initContainers].exists(containers, containers != null && containers.exists(c,
  [?c.?resources.?limits, ?c.?resources.?requests].exists(amounts, amounts.exists(name,
    ({{ include "gpu2dra.cel.isLegacy" . }}) && amounts[name] != '0'))))
{{- end -}}

{{- define "gpu2dra.matchConditions.create" -}}
- name: asks-for-gpu
  expression: |-
    {{- include "gpu2dra.cel.asksForGpu" . | nindent 4 }}
# The annotation gets a pod through even while the webhook is down.
- name: not-opted-out
  expression: object.metadata.?annotations[?'gpu2dra.dev/convert'].orValue('').lowerAscii() != 'false'
# The kubelet made the pod already; mirror pods may not use claims.
- name: not-a-mirror-pod
  expression: "!('kubernetes.io/config.mirror' in object.metadata.?annotations.orValue({}))"
{{- with .Values.webhook.matchConditions }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* A pod that was converted and gets its limit back, as a bare Pod does that is applied again. */}}
{{- define "gpu2dra.matchConditions.update" -}}
- name: converted-before
  expression: "'gpu2dra.dev/converted' in oldObject.metadata.?annotations.orValue({})"
- name: asks-for-gpu
  expression: |-
    {{- include "gpu2dra.cel.asksForGpu" . | nindent 4 }}
{{- with .Values.webhook.matchConditions }}
{{ toYaml . }}
{{- end }}
{{- end -}}
