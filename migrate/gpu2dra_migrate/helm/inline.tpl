{{- /*
Made by gpu2dra, which makes it anew: change nothing here.

For templates that ask for GPUs by claims of Dynamic Resource Allocation where `dra.enabled` in the values says so.
*/ -}}

{{- define "gpu2dra.@version@.gpus" -}}
  {{- /* Prints how many GPUs become a claim, nothing where none do. In: (list $ FROM), a map of resources or an amount. */ -}}
  {{- $root := first . }}
  {{- $amount := last . }}
  {{- if kindIs "map" $amount }}
    {{- $amount = get (ternary $amount.limits dict (kindIs "map" $amount.limits)) "nvidia.com/gpu" }}
  {{- end }}
  {{- $dra := ternary $root.Values.dra dict (kindIs "map" $root.Values.dra) }}
  {{- $enabled := ternary "auto" (toString $dra.enabled) (kindIs "invalid" $dra.enabled) }}
  {{- if not (has $enabled (list "auto" "true" "false")) }}
    {{- fail (printf "dra.enabled is %q: write auto, true or false" $enabled) }}
  {{- end }}
  {{- $new := semverCompare ">=@minimum@-0" $root.Capabilities.KubeVersion.Version }}
  {{- /* A claim holds 32 devices at most; what is no such number stays on the extended resource. */ -}}
  {{- if and (ternary $new (eq $enabled "true") (eq $enabled "auto")) (regexMatch "^([1-9]|[12][0-9]|3[0-2])$" (toString $amount)) }}
    {{- $amount }}
  {{- end }}
{{- end }}

{{- define "gpu2dra.@version@.class" -}}
  {{- /* Prints the DeviceClass that stands for nvidia.com/gpu. In: $. */ -}}
  {{- get (ternary .Values.dra dict (kindIs "map" .Values.dra)) "deviceClassName" | default "@class@" }}
{{- end }}

{{- define "gpu2dra.@version@.digest" -}}
  {{- /* Prints what ends the name of the template: its spec cannot change in a cluster. In: (list $ GPUS). */ -}}
  {{- printf "%s %s" (include "gpu2dra.@version@.class" (first .)) (last .) | sha256sum | trunc 8 }}
{{- end }}

{{- define "gpu2dra.@version@.resources" -}}
  {{- /* Prints a container's resources, with a claim for its GPUs if there are any. In: (list GPUS RESOURCES REQUEST). */ -}}
  {{- $resources := index . 1 }}
  {{- if first . }}
    {{- $resources = deepCopy $resources }}
    {{- range $section := list "limits" "requests" }}
      {{- $values := get $resources $section }}
      {{- if and (kindIs "map" $values) $values }}
        {{- $_ := unset $values "nvidia.com/gpu" }}
        {{- if not $values }}
          {{- $_ := unset $resources $section }}
        {{- end }}
      {{- end }}
    {{- end }}
    {{- $claim := dict "name" "gpu" "request" (last .) }}
    {{- $_ := set $resources "claims" (append (default list $resources.claims) $claim) }}
  {{- end }}
  {{- toYaml $resources }}
{{- end }}

{{- define "gpu2dra.@version@.tolerations" -}}
  {{- /* Prints the tolerations to add: the API server no longer does, for a request that it does not see. In: (list GPUS HAS). */ -}}
  {{- $tolerated := not (first .) }}
  {{- range $toleration := last . }}
    {{- $keyed := has (toString $toleration.key) (list "nvidia.com/gpu" "" "<nil>") }}
    {{- $effective := has (toString $toleration.effect) (list "NoSchedule" "" "<nil>") }}
    {{- $tolerated = or $tolerated (and $keyed $effective (eq (toString $toleration.operator) "Exists")) }}
  {{- end }}
  {{- $more := list (dict "key" "nvidia.com/gpu" "operator" "Exists" "effect" "NoSchedule") }}
  {{- ternary list $more $tolerated | toJson }}
{{- end }}
