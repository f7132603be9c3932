{{/* What is wrong between values, and what no schema can say: a line for each, empty when all is well. */}}

{{- define "gpu2dra.problems" -}}
{{- $name := include "gpu2dra.fullname" . -}}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) }}
/fullnameOverride: No Service can have the name "{{ $name }}"; write lower-case letters, digits and -, and a letter first.
{{- end }}
{{- if eq (int64 .Values.server.port) (int64 .Values.server.metricsPort) }}
/server/metricsPort: {{ .Values.server.port | int64 }} is server.port already; a port of its own is needed.
{{- end }}
{{- $self := .Values.certificates.self -}}
{{- if gt (mul 3 (int64 $self.leafLifetimeSeconds)) (int64 $self.caLifetimeSeconds) }}
/certificates/self/leafLifetimeSeconds: At most a third of caLifetimeSeconds, so that no CA ends before what it signed.
{{- end }}
{{- $metrics := .Values.metrics -}}
{{- $labels := dict "/commonLabels" .Values.commonLabels "/podLabels" .Values.podLabels "/webhook/labels" .Values.webhook.labels -}}
{{- range $kind := list "serviceMonitor" "prometheusRule" "dashboard" -}}
{{- $_ := set $labels (printf "/metrics/%s/labels" $kind) (get $metrics $kind).labels -}}
{{- end -}}
{{- $own := include "gpu2dra.ownLabels" . | fromYaml -}}
{{- range $path, $given := $labels -}}
{{- range $label := keys $given | sortAlpha -}}
{{- if hasKey $own $label }}
{{ $path }}: The label {{ $label }} is the chart's; give others.
{{- end -}}
{{- end -}}
{{- end -}}
{{- $conditions := list "asks-for-gpu" "converted-before" "not-a-mirror-pod" "not-opted-out" -}}
{{- include "gpu2dra.repeated" (list "/webhook/matchConditions" .Values.webhook.matchConditions $conditions) -}}
{{- $variables := list "GPU2DRA_WEBHOOK_NAMESPACE" "GPU2DRA_WEBHOOK_POD_NAME" -}}
{{- include "gpu2dra.repeated" (list "/extraEnv" .Values.extraEnv $variables) -}}
{{- $volumes := list "certificates" "client-ca" "policy" "scratch" -}}
{{- include "gpu2dra.repeated" (list "/extraVolumes" .Values.extraVolumes $volumes) -}}
{{- include "gpu2dra.policyProblems" .Values.policy -}}
{{- end -}}

{{/* Entries of a list whose name another one has. Call with (list path entries names), where `names` are the chart's own. */}}
{{- define "gpu2dra.repeated" -}}
{{- $path := index . 0 -}}
{{- $names := index . 2 -}}
{{- range $index, $entry := index . 1 -}}
{{- with $entry.name -}}
{{- if has . $names }}
{{ $path }}/{{ $index }}/name: "{{ . }}" is in use already; give it another name.
{{- end -}}
{{- $names = append $names . -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
What makes the webhook refuse a policy (gpu2dra.policy.checks) and the schema cannot say. Replicas that run would go on
with the last good one, and none could start any more. A test holds the two together.
*/}}
{{- define "gpu2dra.policyProblems" -}}
{{- $policy := . -}}
{{- range $part := list "devices" "rules" -}}
{{- include "gpu2dra.repeated" (list (printf "/policy/%s" $part) (get $policy $part | default list) list) -}}
{{- end -}}
{{- range $part := list "annotations" "labels" -}}
{{- range $key, $text := dig "metadata" $part dict $policy -}}
{{- include "gpu2dra.unprintable" (list (printf "/policy/metadata/%s/%s" $part ($key | replace "~" "~0" | replace "/" "~1")) $text) -}}
{{- end -}}
{{- end -}}
{{- $devices := list -}}
{{- range $policy.devices -}}
{{- $devices = append $devices .name -}}
{{- end -}}
{{- range $index, $rule := $policy.rules -}}
{{- include "gpu2dra.unprintable" (list (printf "/policy/rules/%d/skip" $index) $rule.skip) -}}
{{- if and $rule.device (not (has $rule.device $devices)) }}
/policy/rules/{{ $index }}/device: There is no device "{{ $rule.device }}"; the devices are {{ join ", " $devices | default "none yet" }}.
{{- end -}}
{{- range $at, $glob := $rule.match.resources -}}
{{- with include "gpu2dra.pointless" (list $glob (hasKey $rule "device")) }}
/policy/rules/{{ $index }}/match/resources/{{ $at }}: {{ . }}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* A text that is no single line of letters, which no pattern of the schema holds. Call with (list path text). */}}
{{- define "gpu2dra.unprintable" -}}
{{- if not (regexMatch "^[\\pL\\pM\\pN\\pP\\pS ]*$" (index . 1 | default "")) }}
{{ index . 0 }}: {{ index . 1 | quote }} cannot stand here; write one line of text.
{{- end -}}
{{- end -}}

{{/* What is wrong with the glob of resource names of a rule, as checks._pointless has it. Call with (list glob device). */}}
{{- define "gpu2dra.pointless" -}}
{{- $glob := index . 0 -}}
{{- $device := index . 1 -}}
{{- $fixed := regexFind "^[^*?]*" $glob -}}
{{- if eq $fixed $glob -}}
{{- if not (include "gpu2dra.isGpuResource" $glob) -}}
"{{ $glob }}" is no GPU resource that gpu2dra knows; write one such as nvidia.com/gpu.
{{- else if and $device (regexMatch "^(nvidia\\.com/gpu(mem|mem-percentage|cores)|volcano\\.sh/.*(memory|percentage|cores))$" $glob) -}}
The amount of {{ $glob }} is no number of devices; only a rule that skips can be for it.
{{- end -}}
{{- else -}}
{{- $pattern := printf "^%s$" (regexQuoteMeta $glob | replace "\\*" ".*" | replace "\\?" ".") -}}
{{- if and $device (not (include "gpu2dra.overlap" (list $fixed "nvidia.com/mig-"))) (not (regexMatch $pattern "nvidia.com/gpu")) -}}
"{{ $glob }}" fits no whole GPU and no MIG profile; a device takes the place of another name only where that is written out.
{{- else if not (or (include "gpu2dra.overlap" (list $fixed "nvidia.com/")) (include "gpu2dra.overlap" (list $fixed "volcano.sh/"))) -}}
"{{ $glob }}" fits no GPU resource that gpu2dra knows; they begin with nvidia.com/ or volcano.sh/.
{{- end -}}
{{- end -}}
{{- end -}}

{{/* The names of gpu2dra.resources. */}}
{{- define "gpu2dra.isGpuResource" -}}
{{- $mig := "mig-[0-9]+(c\\.[0-9]+)?g\\.[0-9]+gb(\\.me(\\.all)?|\\.gfx|\\.all|-me)?" -}}
{{- $nvidia := printf "^nvidia\\.com/(gpu|%s)(\\.shared)?$|^nvidia\\.com/gpu(mem|mem-percentage|cores)$" $mig -}}
{{- $volcano := "^volcano\\.sh/(vgpu-(number|memory|memory-percentage|cores)|gpu-(memory|number))$" -}}
{{- /* A device name of KubeVirt: capitals before the first letter that is none. */}}
{{- $passed := and (regexMatch "^nvidia\\.com/[A-Z0-9]+_[A-Za-z0-9_-]+$" .) (regexMatch "^nvidia\\.com/[A-Z0-9_]*[A-Z]" .) -}}
{{- if or $passed (regexMatch $nvidia .) (regexMatch $volcano .) -}}
true
{{- end -}}
{{- end -}}

{{/* Whether one of two texts begins with the other. Call with (list one other). */}}
{{- define "gpu2dra.overlap" -}}
{{- if or (hasPrefix (index . 0) (index . 1)) (hasPrefix (index . 1) (index . 0)) -}}
true
{{- end -}}
{{- end -}}
