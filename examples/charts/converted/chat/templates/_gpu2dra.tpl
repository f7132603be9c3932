{{- /*
Made by gpu2dra, which makes it anew: change nothing here.

Where `dra.enabled` in the values says so, GPU requests (nvidia.com/gpu and MIG profiles in resources.limits) of the
workloads that this chart renders become claims of Dynamic Resource Allocation, as `gpu2dra convert` would make them.
templates/NAME renders what stands in templates/_NAME through the first of these definitions, the only entrance.
Definitions set what they find in a map that they are given, or print it. `dict`, as the second argument of `ternary`,
stands for what is absent or no map.
*/ -}}

{{- define "gpu2dra.a3c2847f.file" -}}
  {{- /* Prints what templates/NAME renders. In: (list $ "NAME"). */ -}}
  {{- $root := first . }}
  {{- $folder := $root.Template.BasePath }}
  {{- $text := include (printf "%s/%s" $folder (regexReplaceAll "[^/]+$" (last .) "_${0}")) $root }}
  {{- $settings := dict }}
  {{- /* Another template that includes this one by its path, for a checksum say, gets the text as it was. */ -}}
  {{- if and (eq $root.Template.Name (printf "%s/%s" $folder (last .))) (regexMatch "nvidia\\.com/|volcano\\.sh/" $text) }}
    {{- template "gpu2dra.a3c2847f.settings" (dict "root" $root "to" $settings) }}
  {{- end }}
  {{- if $settings.on }}
    {{- template "gpu2dra.a3c2847f.documents" (dict "text" $text "settings" $settings) }}
  {{- else }}
    {{- $text }}
  {{- end }}
{{- end }}

{{- define "gpu2dra.a3c2847f.settings" -}}
  {{- /* Sets in .to: on, and what the conversion has to know. In: root. */ -}}
  {{- $tables := fromYaml (include "gpu2dra.a3c2847f.tables" .) }}
  {{- $dra := ternary .root.Values.dra dict (kindIs "map" .root.Values.dra) }}
  {{- $enabled := ternary "auto" (toString $dra.enabled) (kindIs "invalid" $dra.enabled) }}
  {{- $target := toString (default "1.34+" $dra.target) }}
  {{- if not (has $enabled (list "auto" "true" "false")) }}
    {{- fail (printf "dra.enabled is %q: write auto, true or false" $enabled) }}
  {{- end }}
  {{- if not (hasKey $tables.targets $target) }}
    {{- fail (printf "dra.target is %q: write one of %s, in quotes" $target (keys $tables.targets | sortAlpha | join ", ")) }}
  {{- end }}
  {{- $new := semverCompare (printf ">=%s-0" (trimSuffix "+" $target)) .root.Capabilities.KubeVersion.Version }}
  {{- $_ := set .to "on" (ternary $new (eq $enabled "true") (eq $enabled "auto")) }}
  {{- $_ := set .to "tables" $tables }}
  {{- $_ := set .to "apiVersion" (get $tables.targets $target) }}
  {{- $_ := set $tables.devices.gpu "class" (default $tables.devices.gpu.class $dra.deviceClassName) }}
  {{- $_ := set .to "namespace" .root.Release.Namespace }}
{{- end }}

{{- define "gpu2dra.a3c2847f.documents" -}}
  {{- /* Prints the documents of .text: those that ask for GPUs converted, all others byte for byte. In: settings. */ -}}
  {{- $settings := .settings }}
  {{- $text := replace "<no value>" "" .text }}{{- /* as Helm does, but only after rendering */}}
  {{- $separator := "(?m)^---[ \\t]*" }}
  {{- $separators := prepend (regexFindAll $separator $text -1) "" }}
  {{- $documents := regexSplit $separator $text -1 }}
  {{- $_ := set $settings "claims" dict }}
  {{- range $documents }}
    {{- if contains "ResourceClaim" . }}
      {{- template "gpu2dra.a3c2847f.claim" (dict "object" (fromYaml .) "claims" $settings.claims) }}
    {{- end }}
  {{- end }}
  {{- range $number, $document := $documents }}
    {{- index $separators $number }}
    {{- $made := dict "changed" false "reason" "" "templates" list }}
    {{- $object := dict }}
    {{- if regexMatch "nvidia\\.com/|volcano\\.sh/" $document }}
      {{- /* Numbers become floats here; integers that these cannot hold pass as texts. */ -}}
      {{- $object = fromYaml (regexReplaceAll "(^|[\\s:,\\[])([-+]?[0-9]{16})" $document "${1}gpu2dra.a3c2847f.${2}") }}
      {{- $around := dict "labels" dict "annotations" dict "namespace" "" }}
      {{- template "gpu2dra.a3c2847f.object" (dict "object" $object "around" $around "settings" $settings "to" $made) }}
    {{- end }}
    {{- with $made.reason }}
      {{- printf "\n# gpu2dra leaves this on the extended resource: %s %s\n" . (get $settings.tables.codes .) }}
    {{- end }}
    {{- if $made.changed }}
      {{- range append $made.templates $object }}
        {{- printf "\n%s\n" (toYaml . | replace "gpu2dra.a3c2847f." "") }}
        {{- if eq .kind "ResourceClaimTemplate" }}---{{ end }}
      {{- end }}
    {{- else }}
      {{- $document }}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "gpu2dra.a3c2847f.claim" -}}
  {{- /* Sets the device classes of .object, a claim or a template of claims, in .claims. */ -}}
  {{- $metadata := ternary .object.metadata dict (kindIs "map" .object.metadata) }}
  {{- $text := toRawJson .object.spec }}
  {{- $classes := list }}
  {{- range regexFindAll "\"deviceClassName\":\"[^\"]*\"" $text -1 }}
    {{- $classes = append $classes (trimSuffix "\"" (trimPrefix "\"deviceClassName\":\"" .)) }}
  {{- end }}
  {{- $_ := set .claims (printf "%v/%v" .object.kind $metadata.name) $classes }}
{{- end }}

{{- define "gpu2dra.a3c2847f.find" -}}
  {{- /* Appends to .to.found what .way, a list of keys, leads to within .in; "*" is every item and every value. */ -}}
  {{- $to := .to }}
  {{- $rest := rest .way }}
  {{- if not .way }}
    {{- $_ := set $to "found" (append $to.found .in) }}
  {{- else if and (eq (first .way) "*") (or (kindIs "map" .in) (kindIs "slice" .in)) }}
    {{- range .in }}
      {{- template "gpu2dra.a3c2847f.find" (dict "in" . "way" $rest "to" $to) }}
    {{- end }}
  {{- else if kindIs "map" .in }}
    {{- if hasKey .in (first .way) }}
      {{- template "gpu2dra.a3c2847f.find" (dict "in" (get .in (first .way)) "way" $rest "to" $to) }}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "gpu2dra.a3c2847f.object" -}}
  {{- /*
  Converts .object in place. Sets in .to: changed; templates; reason, the code of what forbids it. In: around, the labels,
  annotations and namespace of the objects that it stands in; settings.
  */ -}}
  {{- $in := . }}
  {{- $object := .object }}
  {{- $metadata := ternary $object.metadata dict (kindIs "map" $object.metadata) }}
  {{- $group := regexReplaceAll "/?[^/]*$" (toString $object.apiVersion) "" }}
  {{- $kind := get .settings.tables.kinds (trimSuffix "." (printf "%v.%s" $object.kind $group)) | default dict }}
  {{- if not (has (last (splitList "/" (toString $object.apiVersion))) (default list $kind.versions)) }}
    {{- $kind = dict }}
  {{- end }}
  {{- $around := dict "labels" dict "annotations" dict }}
  {{- $_ := set $around "namespace" (ternary $metadata.namespace .around.namespace (kindIs "string" $metadata.namespace)) }}
  {{- range $field := list "labels" "annotations" }}
    {{- range $part := list (get $in.around $field) (get $metadata $field) }}
      {{- range $key, $value := ternary $part dict (kindIs "map" $part) }}
        {{- $_ := set (get $around $field) $key $value }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- if and $kind.objects (eq $object.kind "List") }}
    {{- /* Templates become items before their users. */ -}}
    {{- $items := list }}
    {{- range $item := ternary $object.items list (kindIs "slice" $object.items) }}
      {{- $made := dict "changed" false "reason" "" "templates" list }}
      {{- if kindIs "map" $item }}
        {{- template "gpu2dra.a3c2847f.object" (dict "object" $item "around" $in.around "settings" $in.settings "to" $made) }}
      {{- end }}
      {{- $items = append (concat $items $made.templates) $item }}
      {{- $_ := set $in.to "changed" (or $in.to.changed $made.changed) }}
      {{- $_ := set $in.to "reason" (or $in.to.reason $made.reason) }}
    {{- end }}
    {{- $_ := set $object "items" $items }}
  {{- else if $kind.objects }}
    {{- range $way := $kind.objects }}
      {{- $to := dict "found" list }}
      {{- template "gpu2dra.a3c2847f.find" (dict "in" $object "way" (splitList "/" $way) "to" $to) }}
      {{- range $item := $to.found }}
        {{- if kindIs "map" $item }}
          {{- template "gpu2dra.a3c2847f.object" (dict "object" $item "around" $around "settings" $in.settings "to" $in.to) }}
        {{- end }}
      {{- end }}
    {{- end }}
  {{- else if $kind.versions }}
    {{- $workload := dict "object" $object "group" $group "kind" $kind "metadata" $metadata "around" $around }}
    {{- template "gpu2dra.a3c2847f.workload" (dict "workload" $workload "settings" .settings "to" .to) }}
  {{- end }}
{{- end }}

{{- define "gpu2dra.a3c2847f.workload" -}}
  {{- /* Converts all pods of .workload or, with a reason, none. Sets the same as for an object. In: settings. */ -}}
  {{- $in := . }}
  {{- $workload := .workload }}
  {{- $pods := list }}
  {{- range $field := list "templates" "specs" }}
    {{- range $way := get $workload.kind $field | default list }}
      {{- $to := dict "found" list }}
      {{- template "gpu2dra.a3c2847f.find" (dict "in" $workload.object "way" (splitList "/" $way | compact) "to" $to) }}
      {{- range $place := $to.found }}
        {{- if kindIs "map" $place }}
          {{- $pod := dict "spec" $place "metadata" dict }}
          {{- if eq $field "templates" }}
            {{- $pod = dict "spec" $place.spec "metadata" (ternary $place.metadata dict (kindIs "map" $place.metadata)) }}
          {{- end }}
          {{- $pods = ternary (append $pods $pod) $pods (kindIs "map" $pod.spec) }}
        {{- end }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- $reason := "" }}
  {{- $asking := list }}
  {{- range $pod := $pods }}
    {{- template "gpu2dra.a3c2847f.read" (dict "pod" $pod "around" $workload.around "settings" $in.settings) }}
    {{- if $pod.reason }}
      {{- $reason = or $reason $pod.reason }}
    {{- else if $pod.demands }}
      {{- $asking = append $asking $pod }}
      {{- template "gpu2dra.a3c2847f.allocate" $pod }}
    {{- end }}
  {{- end }}
  {{- /* Templates are named after the workload. */ -}}
  {{- $name := $workload.metadata.name }}
  {{- if not (kindIs "string" $name) }}
    {{- $name = $workload.metadata.generateName }}
    {{- $name = regexReplaceAll "-+$" (ternary $name "" (kindIs "string" $name)) "" }}
  {{- end }}
  {{- $stem := trimAll "-." (regexReplaceAll "[^a-z0-9.-]+" (lower $name) "-") }}
  {{- if and $asking (not $stem) }}
    {{- $reason = or $reason "DRA313" }}
  {{- end }}
  {{- $edits := dict "set" list "reason" $reason }}
  {{- if and $asking $workload.kind.operator (not $reason) }}
    {{- template "gpu2dra.a3c2847f.operator" (dict "workload" $workload "pods" $asking "tables" .settings.tables "to" $edits) }}
  {{- end }}
  {{- if $edits.reason }}
    {{- $_ := set .to "reason" (or .to.reason $edits.reason) }}
  {{- else if $asking }}
    {{- $_ := set .to "changed" true }}
    {{- range $edits.set }}
      {{- $_ := set .in .key .value }}
    {{- end }}
    {{- $_ := set $workload "name" $name }}
    {{- $_ := set $workload "stem" $stem }}
    {{- range $pod := $asking }}
      {{- template "gpu2dra.a3c2847f.templates" (dict "pod" $pod "workload" $workload "settings" $in.settings "to" $in.to) }}
      {{- template "gpu2dra.a3c2847f.edit" (dict "pod" $pod "tables" $in.settings.tables) }}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "gpu2dra.a3c2847f.read" -}}
  {{- /*
  Sets in .pod: demands, the containers that ask for GPUs, in starting order; taken, the names of its claims; reason, the
  code of what forbids a conversion. In: around, of its workload; settings.
  */ -}}
  {{- $spec := .pod.spec }}
  {{- $settings := .settings }}
  {{- $demands := list }}
  {{- $reasons := list }}
  {{- $names := list }}
  {{- $taken := list }}
  {{- $sources := dict }}
  {{- range $entry := ternary $spec.resourceClaims list (kindIs "slice" $spec.resourceClaims) }}
    {{- $entry = ternary $entry dict (kindIs "map" $entry) }}
    {{- if kindIs "string" $entry.name }}
      {{- $taken = append $taken $entry.name }}
      {{- $_ := set $sources $entry.name $entry }}
    {{- end }}
  {{- end }}
  {{- range $where := list "initContainers" "containers" }}
    {{- range $container := ternary (get $spec $where) list (kindIs "slice" (get $spec $where)) }}
      {{- if kindIs "map" $container }}
        {{- $phase := ternary "sidecar" "init" (eq (toString $container.restartPolicy) "Always") }}
        {{- $phase = ternary "app" $phase (eq $where "containers") }}
        {{- $name := ternary $container.name "" (kindIs "string" $container.name) }}
        {{- $names = append $names $name }}
        {{- $demand := dict "container" $container "name" $name "phase" $phase "order" (len $names) }}
        {{- template "gpu2dra.a3c2847f.demand" (dict "demand" $demand "tables" $settings.tables) }}
        {{- $reasons = concat $reasons $demand.reasons }}
        {{- range $claim := $demand.claims }}
          {{- $taken = append $taken .name }}
          {{- /* A claim of the same class and a limit: the container would get its GPUs twice. */ -}}
          {{- $source := get $sources .name | default dict }}
          {{- $held := get $settings.claims (printf "ResourceClaim/%v" $source.resourceClaimName) }}
          {{- if kindIs "string" $source.resourceClaimTemplateName }}
            {{- $held = get $settings.claims (printf "ResourceClaimTemplate/%v" $source.resourceClaimTemplateName) }}
          {{- end }}
          {{- range $demand.wants }}
            {{- $reasons = ternary (append $reasons "DRA307") $reasons (has .device.class (default list $held)) }}
          {{- end }}
        {{- end }}
        {{- $demands = ternary (append $demands $demand) $demands (not (empty $demand.wants)) }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- range $demand := $demands }}
    {{- if gt (sub (len $names) (len (without $names .name))) 1 }}
      {{- $reasons = append $reasons "DRA313" }}
    {{- end }}
    {{- range list $spec.resourceClaims $spec.tolerations .container.resources.claims }}
      {{- $reasons = ternary $reasons (append $reasons "DRA313") (or (kindIs "slice" .) (kindIs "invalid" .)) }}
    {{- end }}
  {{- end }}
  {{- /* Places that hold neither extended resources nor claims. */ -}}
  {{- $ephemeral := ternary $spec.ephemeralContainers list (kindIs "slice" $spec.ephemeralContainers) }}
  {{- range $code, $holders := dict "DRA308" (list $spec) "DRA309" $ephemeral }}
    {{- range $holder := $holders }}
      {{- range $section := list "limits" "requests" }}
        {{- $to := dict "found" list }}
        {{- template "gpu2dra.a3c2847f.find" (dict "in" $holder "way" (list "resources" $section) "to" $to) }}
        {{- range $values := $to.found }}
          {{- range $key, $value := ternary $values dict (kindIs "map" $values) }}
            {{- if include "gpu2dra.a3c2847f.meaning" (dict "name" $key "tables" $settings.tables) }}
              {{- $reasons = append $reasons $code }}
            {{- end }}
          {{- end }}
        {{- end }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- if or $demands $reasons }}
    {{- $reasons = prepend $reasons (include "gpu2dra.a3c2847f.skip" .) | compact }}
  {{- end }}
  {{- $_ := set .pod "demands" $demands }}
  {{- $_ := set .pod "taken" $taken }}
  {{- $_ := set .pod "reason" (first (append $reasons "")) }}
{{- end }}

{{- define "gpu2dra.a3c2847f.demand" -}}
  {{- /*
  Sets in .demand: wants, per legacy name the count and the device that replaces it; claims, what its container has
  already; reasons. In: tables.
  */ -}}
  {{- $demand := .demand }}
  {{- $tables := .tables }}
  {{- $wants := dict }}
  {{- $reasons := list }}
  {{- $resources := ternary $demand.container.resources dict (kindIs "map" $demand.container.resources) }}
  {{- $limits := ternary $resources.limits dict (kindIs "map" $resources.limits) }}
  {{- $requests := ternary $resources.requests dict (kindIs "map" $resources.requests) }}
  {{- range $key := concat (keys $limits) (keys $requests) | uniq | sortAlpha }}
    {{- $meaning := include "gpu2dra.a3c2847f.meaning" (dict "name" $key "tables" $tables) }}
    {{- if $meaning }}
      {{- $limit := include "gpu2dra.a3c2847f.billionths" (get $limits $key) }}
      {{- $request := ternary (include "gpu2dra.a3c2847f.billionths" (get $requests $key)) $limit (hasKey $requests $key) }}
      {{- $count := include "gpu2dra.a3c2847f.count" $limit }}
      {{- if not (hasKey $limits $key) }}
        {{- $reasons = append $reasons "DRA303" }}
      {{- else if or (not $count) (not (include "gpu2dra.a3c2847f.count" $request)) }}
        {{- $reasons = append $reasons "DRA301" }}
      {{- else if ne $limit $request }}
        {{- $reasons = append $reasons "DRA302" }}
      {{- else if ne $count "0" }}
        {{- if not (hasKey $tables.devices $meaning) }}
          {{- $reasons = append $reasons (ternary "DRA306" "DRA305" (eq $meaning "shared")) }}
        {{- else if not $demand.name }}
          {{- $reasons = append $reasons "DRA313" }}
        {{- else if gt (int64 $count) 32 }}
          {{- $reasons = append $reasons "DRA304" }}
        {{- else }}
          {{- $device := get $tables.devices $meaning }}
          {{- $profile := trimPrefix "nvidia.com/mig-" $key | replace ".me" "+me" | replace ".gfx" "+gfx" }}
          {{- $expression := ternary (printf (default "%s" $device.expression) $profile) "" (hasKey $device "expression") }}
          {{- $device = dict "class" $device.class "expression" $expression }}
          {{- $_ := set $wants $key (dict "count" (int64 $count) "device" $device) }}
        {{- end }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- $claims := list }}
  {{- range ternary $resources.claims list (kindIs "slice" $resources.claims) }}
    {{- if kindIs "map" . }}
      {{- $claims = ternary (append $claims .) $claims (kindIs "string" .name) }}
    {{- end }}
  {{- end }}
  {{- $_ := set $demand "wants" $wants }}
  {{- $_ := set $demand "claims" $claims }}
  {{- $_ := set $demand "reasons" $reasons }}
{{- end }}

{{- define "gpu2dra.a3c2847f.meaning" -}}
  {{- /* Prints what the resource .name asks for (a row of the names in .tables); nothing where it is no NVIDIA GPU. */ -}}
  {{- $name := .name }}
  {{- $meaning := "" }}
  {{- range $row := .tables.names }}
    {{- $all := not $meaning }}
    {{- range $pattern := $row.patterns }}
      {{- $all = and $all (regexMatch $pattern $name) }}
    {{- end }}
    {{- $meaning = ternary $row.meaning $meaning $all }}
  {{- end }}
  {{- $meaning }}
{{- end }}

{{- define "gpu2dra.a3c2847f.billionths" -}}
  {{- /*
  Prints the quantity as a whole number of billionths, rounded up as the API server does; nothing where it is none. What
  has more than 18 digits is far more than a claim holds and comes out as eighteen nines.
  */ -}}
  {{- $syntax := "^([+-]?)([0-9]*)\\.?([0-9]*)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$" }}
  {{- $text := ternary "0" (toRawJson .) (kindIs "invalid" .) }}
  {{- $text = ternary (trimAll " " (toString .)) $text (kindIs "string" .) }}
  {{- if and $text (le (len $text) 256) (regexMatch $syntax $text) }}
    {{- $whole := regexReplaceAll $syntax $text "${2}" }}
    {{- $part := regexReplaceAll $syntax $text "${3}" }}
    {{- $suffix := regexReplaceAll $syntax $text "${4}" }}
    {{- $digits := regexReplaceAll "^0+" (print $whole $part) "" }}
    {{- if $digits }}
      {{- $power := sub 9 (len $part) }}
      {{- $powers := dict "n" -9 "u" -6 "m" -3 "k" 3 "M" 6 "G" 9 "T" 12 "P" 15 "E" 18 }}
      {{- $binary := get (dict "Ki" 1 "Mi" 2 "Gi" 3 "Ti" 4 "Pi" 5 "Ei" 6) $suffix | default 0 }}
      {{- $large := false }}
      {{- if $binary }}
        {{- $large = gt (add (len $digits) (mul 3 $binary) 1) 18 }}
        {{- range until (ternary 0 $binary $large) }}
          {{- $digits = print (mul 1024 (int64 $digits)) }}
        {{- end }}
      {{- else if hasKey $powers $suffix }}
        {{- $power = add $power (get $powers $suffix) }}
      {{- else if $suffix }}
        {{- $exponent := regexReplaceAll "^[eE][+-]?0*" $suffix "" }}
        {{- $exponent = ternary (int64 (default "0" $exponent)) 9999 (le (len $exponent) 4) }}
        {{- $power = ternary (sub $power $exponent) (add $power $exponent) (contains "-" $suffix) }}
      {{- end }}
      {{- $dropped := "" }}
      {{- if lt $power 0 }}
        {{- $kept := max 0 (add (len $digits) $power) }}
        {{- $dropped = substr (int $kept) (len $digits) $digits }}
        {{- $digits = default "0" (trunc (int $kept) $digits) }}
      {{- else if le (add (len $digits) $power) 18 }}
        {{- $digits = print $digits (repeat (int $power) "0") }}
      {{- else }}
        {{- $large = true }}
      {{- end }}
      {{- if or $large (gt (len $digits) 18) }}
        {{- $digits = repeat 18 "9" }}
      {{- else if regexMatch "[1-9]" $dropped }}
        {{- $digits = print (add1 $digits) }}
      {{- end }}
      {{- ternary "-" "" (hasPrefix "-" $text) }}{{ $digits }}
      {{- /* Without any digit the server's fast path, which knows these suffixes, reads zero. */ -}}
    {{- else if or $whole $part (regexMatch "^[+-]?\\.?([numkMGTPE]|[KMGT]i|[eE](\\+?[0-9]+|-0*[0-9]))?$" $text) }}0
    {{- end }}
  {{- end }}
{{- end }}

{{- define "gpu2dra.a3c2847f.count" -}}
  {{- /* Prints the number of devices that so many billionths are; nothing where they are negative or not whole. */ -}}
  {{- /* The server looks at thousandths, rounded up. */ -}}
  {{- $thousandths := div (add (int64 (default "0" .)) 999999) 1000000 }}
  {{- if and . (not (hasPrefix "-" .)) (eq (mod $thousandths 1000) 0) }}{{ div $thousandths 1000 }}{{ end }}
{{- end }}

{{- define "gpu2dra.a3c2847f.cut" -}}
  {{- /* Prints .text and .tail, the text cut to fit .most characters; a cut does not end in - or a dot. */ -}}
  {{- $room := sub .most (len .tail) }}
  {{- $text := .text }}
  {{- if gt (len $text) $room }}
    {{- $text = regexReplaceAll "[-.]+$" (trunc (int $room) $text) "" }}
  {{- end }}
  {{- print $text .tail }}
{{- end }}

{{- define "gpu2dra.a3c2847f.unique" -}}
  {{- /* Prints .wish, or wish-2, wish-3 and so on: the first of them, cut to 63 characters, that is not in .taken. In: number, from 1. */ -}}
  {{- $tail := ternary "" (printf "-%d" .number) (eq .number 1) }}
  {{- $name := include "gpu2dra.a3c2847f.cut" (dict "text" .wish "most" 63 "tail" $tail) }}
  {{- if has $name .taken }}
    {{- $next := dict "wish" .wish "taken" .taken "number" (int (add1 .number)) }}
    {{- $name = include "gpu2dra.a3c2847f.unique" $next }}
  {{- end }}
  {{- $name }}
{{- end }}

{{- define "gpu2dra.a3c2847f.allocate" -}}
  {{- /*
  Sets claims, each with its entry in the pod and its requests, and in each of the demands holds, what the container names
  of them. In: demands, taken. A container that starts last owns one request; a plain init container borrows whole
  requests of those that start after it, and what is missing is one request that all of them share.
  */ -}}
  {{- $demands := .demands }}
  {{- $names := list }}
  {{- $resources := list }}
  {{- range $demands }}
    {{- $names = append $names .name }}
    {{- $resources = concat $resources (keys .wants | sortAlpha) | uniq }}
    {{- $_ := set . "uses" list }}
  {{- end }}
  {{- $made := list }}
  {{- range $resource := $resources }}
    {{- $sharing := list }}
    {{- range $demands }}
      {{- $sharing = ternary (append $sharing .) $sharing (hasKey .wants $resource) }}
    {{- end }}
    {{- $owned := list }}
    {{- range $sharing }}
      {{- if or (ne .phase "init") (eq (len $sharing) 1) }}
        {{- $want := get .wants $resource }}
        {{- $id := printf "%d %s" .order $resource }}
        {{- $owned = append $owned (dict "id" $id "name" .name "order" .order "count" $want.count "device" $want.device) }}
        {{- $_ := set . "uses" (append .uses $id) }}
      {{- end }}
    {{- end }}
    {{- $extra := dict }}
    {{- range $demand := ternary $sharing list (gt (len $sharing) 1) }}
      {{- if eq .phase "init" }}
        {{- $want := get .wants $resource }}
        {{- $missing := $want.count }}
        {{- range $owned }}
          {{- if and (gt .order $demand.order) (gt $missing 0) }}
            {{- $_ := set $demand "uses" (append $demand.uses .id) }}
            {{- $missing = sub $missing .count }}
          {{- end }}
        {{- end }}
        {{- if gt $missing 0 }}
          {{- if not $extra }}
            {{- $id := printf "init %s" $resource }}
            {{- $extra = dict "id" $id "name" .name "order" .order "count" 0 "device" $want.device }}
          {{- end }}
          {{- $_ := set $extra "count" (max $extra.count $missing) }}
          {{- $_ := set . "uses" (append .uses $extra.id) }}
        {{- end }}
      {{- end }}
    {{- end }}
    {{- $made = concat $made (ternary $owned (append $owned $extra) (empty $extra)) }}
  {{- end }}
  {{- /* In starting order; a second request of a container gets a name of its own. */ -}}
  {{- $requests := list }}
  {{- $byId := dict }}
  {{- $used := list }}
  {{- range $demand := $demands }}
    {{- range $request := $made }}
      {{- if eq .order $demand.order }}
        {{- if has .name $used }}
          {{- $wish := dict "wish" .name "taken" (concat $used $names) "number" 1 }}
          {{- $_ := set . "name" (include "gpu2dra.a3c2847f.unique" $wish) }}
        {{- end }}
        {{- $used = append $used .name }}
        {{- $requests = append $requests . }}
        {{- $_ := set $byId .id . }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- /* One claim, unless a container needs some of the requests only: it can name each claim but once. */ -}}
  {{- $whole := true }}
  {{- $uses := list }}
  {{- range $demands }}
    {{- $uses = append $uses .uses }}
    {{- $whole = and $whole (has (len .uses) (list 0 1 (len $requests))) }}
  {{- end }}
  {{- $to := dict "groups" list }}
  {{- template "gpu2dra.a3c2847f.spread" (dict "requests" $requests "apart" (ternary list $uses $whole) "to" $to) }}
  {{- if and $whole (gt (len $to.groups) 1) }}
    {{- $_ := set $to "groups" list }}
    {{- template "gpu2dra.a3c2847f.spread" (dict "requests" $requests "apart" $uses "to" $to) }}
  {{- end }}
  {{- $taken := .taken }}
  {{- range $claim := $to.groups }}
    {{- $stems := list }}
    {{- range $request := .requests }}
      {{- $stems = append $stems (first (splitList "." .device.class)) | uniq }}
    {{- end }}
    {{- $wish := dict "wish" (ternary (first $stems) "gpu" (eq (len $stems) 1)) "taken" $taken "number" 1 }}
    {{- $_ := set . "entry" (include "gpu2dra.a3c2847f.unique" $wish) }}
    {{- $taken = append $taken .entry }}
    {{- range $request := .requests }}
      {{- $_ := set . "entry" $claim.entry }}
    {{- end }}
  {{- end }}
  {{- range $demand := $demands }}
    {{- $holds := list }}
    {{- $entries := list }}
    {{- range $id := .uses }}
      {{- $request := get $byId $id }}
      {{- $holds = append $holds (dict "name" $request.entry "request" $request.name) }}
      {{- $entries = append $entries $request.entry | uniq }}
    {{- end }}
    {{- $_ := set . "holds" (ternary (list (dict "name" (first $entries))) $holds (lt (len $entries) (len $holds))) }}
  {{- end }}
  {{- $_ := set . "claims" $to.groups }}
{{- end }}

{{- define "gpu2dra.a3c2847f.spread" -}}
  {{- /*
  Sets in .to: groups of .requests, as few as hold at most 32 devices, and so requests, each and keep apart what one list of
  .apart holds.
  */ -}}
  {{- $apart := .apart }}
  {{- $to := .to }}
  {{- range $request := .requests }}
    {{- $others := list }}
    {{- range $ids := $apart }}
      {{- $others = ternary (concat $others $ids) $others (has $request.id $ids) }}
    {{- end }}
    {{- $placed := false }}
    {{- range $group := $to.groups }}
      {{- $fits := and (not $placed) (le (add .devices $request.count) 32) }}
      {{- range .requests }}
        {{- $fits = and $fits (not (has .id $others)) }}
      {{- end }}
      {{- if $fits }}
        {{- $placed = true }}
        {{- $_ := set . "requests" (append .requests $request) }}
        {{- $_ := set . "devices" (add .devices $request.count) }}
      {{- end }}
    {{- end }}
    {{- if not $placed }}
      {{- $_ := set $to "groups" (append $to.groups (dict "requests" (list $request) "devices" $request.count)) }}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "gpu2dra.a3c2847f.templates" -}}
  {{- /* Appends a ResourceClaimTemplate for each claim of .pod to .to.templates. In: workload, settings. */ -}}
  {{- $workload := .workload }}
  {{- $settings := .settings }}
  {{- $to := .to }}
  {{- $around := $workload.around }}
  {{- range $claim := .pod.claims }}
    {{- $canonical := list }}
    {{- $requests := list }}
    {{- range $request := .requests }}
      {{- $exactly := dict "deviceClassName" .device.class "allocationMode" "ExactCount" "count" .count }}
      {{- with .device.expression }}
        {{- $_ := set $exactly "selectors" (list (dict "cel" (dict "expression" .))) }}
      {{- end }}
      {{- $canonical = append $canonical (dict "name" .name "exactly" $exactly) }}
      {{- $requests = append $requests (set (omit $exactly) "name" .name) }}
    {{- end }}
    {{- $requests = ternary $requests $canonical (eq $settings.apiVersion "resource.k8s.io/v1beta1") }}
    {{- /* A spec cannot change in a cluster, so its digest is part of the name. */ -}}
    {{- $spec := dict "spec" (dict "devices" (dict "requests" $canonical)) }}
    {{- $digest := dict "group" $workload.group "kind" $workload.object.kind "spec" $spec | toRawJson | sha256sum | trunc 8 }}
    {{- $tail := printf "-gpu-%s" $digest }}
    {{- $name := include "gpu2dra.a3c2847f.cut" (dict "text" $workload.stem "most" 253 "tail" $tail) }}
    {{- $_ := set . "template" $name }}
    {{- $metadata := dict "name" $name "annotations" dict }}
    {{- if $around.namespace }}
      {{- $_ := set $metadata "namespace" $around.namespace }}
    {{- end }}
    {{- if $around.labels }}
      {{- $_ := set $metadata "labels" $around.labels }}
    {{- end }}
    {{- $kind := trimSuffix "." (printf "%s.%s" $workload.object.kind $workload.group) }}
    {{- $_ := set $metadata.annotations "gpu2dra.dev/workload" (printf "%s/%s" $kind $workload.name) }}
    {{- $_ := set $metadata.annotations "helm.sh/resource-policy" "keep" }}
    {{- $hooks := dict "helm.sh/hook" "helm.sh/hook-weight" "argocd.argoproj.io/hook" "argocd.argoproj.io/sync-wave" }}
    {{- range $hook, $order := $hooks }}
      {{- $hooked := and (hasKey $around.annotations $hook) (kindIs "string" (get $around.annotations $hook)) }}
      {{- if $hooked }}
        {{- $_ := set $metadata.annotations $hook (get $around.annotations $hook) }}
      {{- end }}
      {{- /* One earlier than its user; what is no whole number counts as 0. */ -}}
      {{- if or $hooked (hasKey $around.annotations $order) }}
        {{- $weight := get $around.annotations $order }}
        {{- $weight = ternary $weight (toRawJson $weight) (kindIs "string" $weight) }}
        {{- $weight = regexReplaceAll "^ *[+]?(-?)0*([0-9]{1,18}) *$" $weight "${1}${2}" }}
        {{- $weight = ternary $weight "0" (regexMatch "^-?[0-9]+$" $weight) }}
        {{- $_ := set $metadata.annotations $order (toString (sub $weight 1)) }}
      {{- end }}
    {{- end }}
    {{- $same := false }}
    {{- range $to.templates }}
      {{- $same = or $same (eq .metadata.name $name) }}
    {{- end }}
    {{- if not $same }}
      {{- $spec = dict "spec" (dict "devices" (dict "requests" $requests)) }}
      {{- $template := dict "apiVersion" $settings.apiVersion "kind" "ResourceClaimTemplate" "metadata" $metadata "spec" $spec }}
      {{- $_ := set $to "templates" (append $to.templates $template) }}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "gpu2dra.a3c2847f.edit" -}}
  {{- /* Edits the spec of .pod in place: its claims come, limits and requests go, tolerations stay true. In: tables. */ -}}
  {{- $tables := .tables }}
  {{- $spec := .pod.spec }}
  {{- $entries := default list $spec.resourceClaims }}
  {{- range .pod.claims }}
    {{- $entries = append $entries (dict "name" .entry "resourceClaimTemplateName" .template) }}
  {{- end }}
  {{- $_ := set $spec "resourceClaims" $entries }}
  {{- $tolerations := default list $spec.tolerations }}
  {{- range $demand := .pod.demands }}
    {{- $resources := .container.resources }}
    {{- range $section := list "limits" "requests" }}
      {{- $values := get $resources $section }}
      {{- if kindIs "map" $values }}
        {{- $left := len $values }}
        {{- range $key := keys $demand.wants }}
          {{- $_ := unset $values $key }}
        {{- end }}
        {{- if and (not $values) $left }}
          {{- $_ := unset $resources $section }}
        {{- end }}
      {{- end }}
    {{- end }}
    {{- $_ := set $resources "claims" (concat (default list $resources.claims) .holds) }}
    {{- /* The ExtendedResourceToleration plugin would have added it for the name that goes. */ -}}
    {{- range $key := keys .wants | sortAlpha }}
      {{- $tolerated := not $tables.tolerations }}
      {{- range $toleration := $tolerations }}
        {{- $toleration = ternary $toleration dict (kindIs "map" $toleration) }}
        {{- $keyed := or (kindIs "invalid" $toleration.key) (has $toleration.key (list $key "")) }}
        {{- $effective := or (kindIs "invalid" $toleration.effect) (has $toleration.effect (list "NoSchedule" "")) }}
        {{- $tolerated = or $tolerated (and $keyed $effective (eq (toString $toleration.operator) "Exists")) }}
      {{- end }}
      {{- if not $tolerated }}
        {{- $tolerations = append $tolerations (dict "key" $key "operator" "Exists" "effect" "NoSchedule") }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- if $tolerations }}
    {{- $_ := set $spec "tolerations" $tolerations }}
  {{- end }}
{{- end }}

{{- define "gpu2dra.a3c2847f.skip" -}}
  {{- /* Prints the code of the first reason to leave .pod alone although it asks for GPUs. In: around, settings. */ -}}
  {{- $spec := .pod.spec }}
  {{- $tables := .settings.tables }}
  {{- $codes := dict }}
  {{- $own := .pod.metadata.annotations }}
  {{- range $annotations := list (ternary $own dict (kindIs "map" $own)) .around.annotations }}
    {{- range $key, $value := $annotations }}
      {{- if and (eq $key "gpu2dra.dev/convert") (eq (lower (toString $value)) "false") }}
        {{- $_ := set $codes "DRA201" true }}
      {{- end }}
      {{- $static := and (eq $key "kubernetes.io/config.source") (eq (toString $value) "file") }}
      {{- if or $static (eq $key "kubernetes.io/config.mirror") }}
        {{- $_ := set $codes "DRA202" true }}
      {{- end }}
      {{- if has $key $tables.foreign }}
        {{- $_ := set $codes "DRA305" true }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- if has (default .settings.namespace .around.namespace) $tables.namespaces }}
    {{- $_ := set $codes "DRA205" true }}
  {{- end }}
  {{- $selector := ternary $spec.nodeSelector dict (kindIs "map" $spec.nodeSelector) }}
  {{- $system := ternary $spec.os dict (kindIs "map" $spec.os) }}
  {{- if has "windows" (list $system.name (get $selector "kubernetes.io/os") (get $selector "beta.kubernetes.io/os")) }}
    {{- $_ := set $codes "DRA204" true }}
  {{- end }}
  {{- if $spec.nodeName }}
    {{- $_ := set $codes "DRA203" true }}
  {{- end }}
  {{- if not (has (default "default-scheduler" $spec.schedulerName) $tables.schedulers) }}
    {{- $_ := set $codes "DRA206" true }}
  {{- end }}
  {{- /* Nodes that hand out shares or slices: the amount does not count whole GPUs. */ -}}
  {{- $wanted := list }}
  {{- range $label, $value := $selector }}
    {{- $wanted = append $wanted (dict "label" $label "values" (list $value)) }}
  {{- end }}
  {{- $to := dict "found" list }}
  {{- $way := list "affinity" "nodeAffinity" "requiredDuringSchedulingIgnoredDuringExecution" "nodeSelectorTerms" "*" }}
  {{- $way = concat $way (list "matchExpressions" "*") }}
  {{- template "gpu2dra.a3c2847f.find" (dict "in" $spec "way" $way "to" $to) }}
  {{- range $term := $to.found }}
    {{- if kindIs "map" $term }}
      {{- if has .operator (list "In" "Exists") }}
        {{- $values := ternary .values list (kindIs "slice" .values) | default (list "") }}
        {{- $wanted = append $wanted (dict "label" (toString .key) "values" $values) }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- range $wanted }}
    {{- $share := get $tables.shares .label | default dict }}
    {{- range $value := .values }}
      {{- if and $share (not (has (toString $value) (default list $share.unless))) }}
        {{- if regexMatch (default "^" $share.like) (toString $value) }}
          {{- $_ := set $codes "DRA306" true }}
        {{- end }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- first (append (keys $codes | sortAlpha) "") }}
{{- end }}


{{- define "gpu2dra.a3c2847f.tables" -}}
kinds:
  "Pod": {"versions": ["v1"], "templates": [""]}
  "PodTemplate": {"versions": ["v1"], "templates": ["template"]}
  "ReplicationController": {"versions": ["v1"], "templates": ["spec/template"]}
  "List": {"versions": ["v1"], "objects": ["items/*"]}
  "ReplicaSet.apps": {"versions": ["v1"], "templates": ["spec/template"]}
  "Deployment.apps": {"versions": ["v1"], "templates": ["spec/template"]}
  "StatefulSet.apps": {"versions": ["v1"], "templates": ["spec/template"]}
  "DaemonSet.apps": {"versions": ["v1"], "templates": ["spec/template"]}
  "Job.batch": {"versions": ["v1"], "templates": ["spec/template"]}
  "CronJob.batch": {"versions": ["v1"], "templates": ["spec/jobTemplate/spec/template"]}
names:
- {"meaning": "gpu", "patterns": ["^(?:nvidia\\.com/gpu)$"]}
- {"meaning": "mig", "patterns": ["^(?:nvidia\\.com/mig-(?P<profile>\\d+(?:c\\.\\d+)?g\\.\\d+gb(?:\\.me(?:\\.all)?|\\.gfx|\\.all|-me)?))$"]}
- {"meaning": "shared", "patterns": ["^(?:nvidia\\.com/gpu\\.shared|nvidia\\.com/mig-(?P<profile>\\d+(?:c\\.\\d+)?g\\.\\d+gb(?:\\.me(?:\\.all)?|\\.gfx|\\.all|-me)?)\\.shared)$"]}
- {"meaning": "fraction", "patterns": ["^(?:nvidia\\.com/(?:gpumem|gpumem-percentage|gpucores))$"]}
- {"meaning": "fraction", "patterns": ["^(?:volcano\\.sh/(?:vgpu-(?:number|memory|memory-percentage|cores)|gpu-(?:memory|number)))$"]}
- {"meaning": "passthrough", "patterns": ["^nvidia\\.com/[A-Z0-9_]*[A-Z]", "^(?:nvidia\\.com/[A-Z0-9]+_[A-Za-z0-9_-]+)$"]}
devices:
  "gpu": {"class": "gpu.nvidia.com"}
  "mig": {"class": "mig.nvidia.com", "expression": "'profile' in device.attributes['gpu.nvidia.com'] && device.attributes['gpu.nvidia.com'].profile == '%s'"}
targets:
  "1.32": "resource.k8s.io/v1beta1"
  "1.33": "resource.k8s.io/v1beta2"
  "1.34+": "resource.k8s.io/v1"
shares:
  "cloud.google.com/gke-gpu-sharing-strategy": {"like": "^"}
  "cloud.google.com/gke-max-shared-clients-per-gpu": {"like": "^"}
  "cloud.google.com/gke-gpu-partition-size": {"like": "^"}
  "nvidia.com/gpu.sharing-strategy": {"like": "^", "unless": ["none", ""]}
  "nvidia.com/gpu.product": {"like": "-SHARED$|-MIG-"}
  "nvidia.com/mig.strategy": {"like": "^single$"}
foreign: ["gpu-fraction", "gpu-fraction-num-devices", "gpu-memory", "hami.io/gpu-scheduler-policy", "hami.io/node-scheduler-policy", "nvidia.com/nouse-gputype", "nvidia.com/nouse-gpuuuid", "nvidia.com/use-gputype", "nvidia.com/use-gpuuuid", "nvidia.com/vgpu-mode"]
namespaces: ["dra-driver-nvidia-gpu", "gpu-operator", "gpu-operator-resources", "gpu2dra-system", "kube-node-lease", "kube-public", "kube-system", "nvidia-device-plugin", "nvidia-dra-driver-gpu", "nvidia-gpu-operator"]
schedulers: ["default-scheduler"]
tolerations: true
codes:
  "DRA201": "opted-out"
  "DRA202": "static-pod"
  "DRA203": "node-name"
  "DRA204": "windows"
  "DRA205": "system-namespace"
  "DRA206": "other-scheduler"
  "DRA301": "bad-amount"
  "DRA302": "request-differs"
  "DRA303": "request-without-limit"
  "DRA304": "too-many-devices"
  "DRA305": "foreign-fraction"
  "DRA306": "shared-gpu"
  "DRA307": "claim-and-limit"
  "DRA308": "pod-level-resources"
  "DRA309": "ephemeral-container"
  "DRA313": "malformed"
  "DRA315": "operator-reads-limit"
{{- end }}
