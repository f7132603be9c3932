{{- define "gpu2dra.@version@.operator" -}}
  {{- /*
  What else must change because an operator reads the limit in .workload. Sets in .to: set, the edits (in, key, value); or
  reason, where the operator has no other field. In: pods, the ones that lose limits; tables.
  */ -}}
  {{- $in := . }}
  {{- $to := .to }}
  {{- $object := .workload.object }}
  {{- $rule := .workload.kind.operator }}
  {{- if eq $rule "kuberay" }}
    {{- range $way := .workload.kind.templates }}
      {{- $groups := dict "found" list }}
      {{- if hasSuffix "/template" $way }}
        {{- $way = splitList "/" (trimSuffix "/template" $way) }}
        {{- template "gpu2dra.@version@.find" (dict "in" $object "way" $way "to" $groups) }}
      {{- end }}
      {{- range $group := $groups.found }}
        {{- template "gpu2dra.@version@.rayGroup" (dict "group" $group "tables" $in.tables "to" $to) }}
      {{- end }}
    {{- end }}
  {{- else if eq $rule "trainer" }}
    {{- template "gpu2dra.@version@.trainer" (dict "object" $object "tables" .tables "to" .to) }}
  {{- else if and (eq $rule "mpi-v1") (eq $object.apiVersion "kubeflow.org/v1") }}
    {{- /* A launcher with a GPU is a worker, too. */ -}}
    {{- $launcher := dict "found" list }}
    {{- $way := list "spec" "mpiReplicaSpecs" "Launcher" "template" "spec" "containers" "*" }}
    {{- template "gpu2dra.@version@.find" (dict "in" $object "way" $way "to" $launcher) }}
    {{- range $container := $launcher.found }}
      {{- $demand := dict "container" $container "name" "launcher" }}
      {{- if kindIs "map" $container }}
        {{- template "gpu2dra.@version@.demand" (dict "demand" $demand "tables" $in.tables) }}
        {{- if regexMatch "gpu" (keys $demand.wants | join " ") }}
          {{- $_ := set $to "reason" "DRA315" }}
        {{- end }}
      {{- end }}
    {{- end }}
  {{- else if eq $rule "kserve" }}
    {{- /* With a workerSpec it counts nodes by the limits; Knative, which may run the service, refuses claims. */ -}}
    {{- $holders := dict "found" list }}
    {{- range $way := list "spec" "spec/predictor" "spec/canary/*/predictor" }}
      {{- template "gpu2dra.@version@.find" (dict "in" $object "way" (splitList "/" $way) "to" $holders) }}
    {{- end }}
    {{- range $holder := $holders.found }}
      {{- if hasKey (ternary $holder dict (kindIs "map" $holder)) "workerSpec" }}
        {{- $_ := set $to "reason" "DRA315" }}
      {{- end }}
    {{- end }}
    {{- $own := .workload.metadata.annotations }}
    {{- $mode := get (ternary $own dict (kindIs "map" $own)) "serving.kserve.io/deploymentMode" }}
    {{- if and (eq $object.kind "InferenceService") (not (has $mode (list "Standard" "RawDeployment"))) }}
      {{- $_ := set $to "reason" "DRA315" }}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "gpu2dra.@version@.rayGroup" -}}
  {{- /*
  KubeRay and Ray's autoscaler take num-gpus of .group from the limits of its first container: appends the edit that says
  it to .to.set. In: tables.
  */ -}}
  {{- $group := ternary .group dict (kindIs "map" .group) }}
  {{- $params := ternary $group.rayStartParams dict (kindIs "map" $group.rayStartParams) }}
  {{- $resources := ternary $group.resources dict (kindIs "map" $group.resources) }}
  {{- $pattern := "gpu$|nvidia\\.com/mig-[0-9]+g\\.[0-9]+gb$" }}
  {{- $told := hasKey $params "num-gpus" }}
  {{- range $key := keys $resources }}
    {{- $told = or $told (regexMatch $pattern (lower $key)) }}
  {{- end }}
  {{- $containers := dict "found" list }}
  {{- $way := list "template" "spec" "containers" "*" }}
  {{- template "gpu2dra.@version@.find" (dict "in" $group "way" $way "to" $containers) }}
  {{- $to := dict "found" list }}
  {{- $way = list "resources" "limits" }}
  {{- template "gpu2dra.@version@.find" (dict "in" (first (append $containers.found "")) "way" $way "to" $to) }}
  {{- $limits := first (append $to.found dict) }}
  {{- /* Of several it takes the first by name that is not zero. */ -}}
  {{- $name := "" }}
  {{- range $key, $value := ternary $limits dict (kindIs "map" $limits) }}
    {{- if and (not $name) (regexMatch $pattern $key) (ne (include "gpu2dra.@version@.billionths" $value) "0") }}
      {{- $name = $key }}
    {{- end }}
  {{- end }}
  {{- if and $name (not $told) (include "gpu2dra.@version@.meaning" (dict "name" $name "tables" .tables)) }}
    {{- $count := include "gpu2dra.@version@.count" (include "gpu2dra.@version@.billionths" (get $limits $name)) }}
    {{- $field := ternary "resources" "rayStartParams" (not (empty $resources)) }}
    {{- $key := ternary "GPU" "num-gpus" (eq $field "resources") }}
    {{- $edit := dict "in" $group "key" $field "value" (dict $key $count) }}
    {{- if kindIs "map" (get $group $field) }}
      {{- $edit = dict "in" (get $group $field) "key" $key "value" $count }}
    {{- end }}
    {{- $_ := set .to "set" (append .to.set $edit) }}
  {{- end }}
{{- end }}

{{- define "gpu2dra.@version@.trainer" -}}
  {{- /*
  Kubeflow Trainer takes the processes per node from the limits of container "node": sets .to.set or .to.reason.
  In: object, tables.
  */ -}}
  {{- $tables := .tables }}
  {{- $to := .to }}
  {{- $jobs := dict "found" list }}
  {{- $way := splitList "/" "spec/template/spec/replicatedJobs/*" }}
  {{- template "gpu2dra.@version@.find" (dict "in" .object "way" $way "to" $jobs) }}
  {{- $node := dict }}
  {{- range $job := $jobs.found }}
    {{- $labels := dict "found" list }}
    {{- $way := list "template" "metadata" "labels" "trainer.kubeflow.org/trainjob-ancestor-step" }}
    {{- template "gpu2dra.@version@.find" (dict "in" $job "way" $way "to" $labels) }}
    {{- $named := dict "found" list }}
    {{- template "gpu2dra.@version@.find" (dict "in" $job "way" (list "name") "to" $named) }}
    {{- $trains := or (has "trainer" $labels.found) (has "node" $named.found) }}
    {{- $containers := dict "found" list }}
    {{- $way = splitList "/" "template/spec/template/spec/containers/*" }}
    {{- template "gpu2dra.@version@.find" (dict "in" $job "way" $way "to" $containers) }}
    {{- range $container := ternary $containers.found list $trains }}
      {{- $container = ternary $container dict (kindIs "map" $container) }}
      {{- if and (not $node) (eq (toString $container.name) "node") (not (kindIs "invalid" $container.resources)) }}
        {{- $node = dict "container" $container "name" "node" }}
      {{- end }}
    {{- end }}
  {{- end }}
  {{- $count := 0 }}
  {{- if $node }}
    {{- template "gpu2dra.@version@.demand" (dict "demand" $node "tables" $tables) }}
    {{- range $key, $want := $node.wants }}
      {{- $count = ternary $want.count $count (contains "gpu" (lower $key)) }}
    {{- end }}
  {{- end }}
  {{- $policies := dict "found" list }}
  {{- template "gpu2dra.@version@.find" (dict "in" .object "way" (list "spec" "mlPolicy") "to" $policies) }}
  {{- $policies = first (append $policies.found dict) }}
  {{- $rule := "" }}
  {{- range $name := list "torch" "mpi" "xgboost" "flux" }}
    {{- $found := kindIs "map" (get (ternary $policies dict (kindIs "map" $policies)) $name) }}
    {{- $rule = ternary $name $rule (and $found (not $rule)) }}
  {{- end }}
  {{- if and $count $rule }}
    {{- $policy := get $policies $rule }}
    {{- $written := $policy.numProcPerNode }}
    {{- $write := false }}
    {{- if eq $rule "torch" }}
      {{- /* Without a GPU it starts one process per CPU: of the request, else of the limit, at least one. */ -}}
      {{- $cpus := "" }}
      {{- range $section := list "requests" "limits" }}
        {{- $values := get $node.container.resources $section }}
        {{- $values = ternary $values dict (kindIs "map" $values) }}
        {{- $cpu := include "gpu2dra.@version@.billionths" $values.cpu }}
        {{- if not $cpus }}
          {{- $cpus = ternary "" (default "unknown" $cpu) (eq $cpu "0") }}
        {{- end }}
      {{- end }}
      {{- $processes := max 1 (div (add (int64 (default "0" $cpus)) 999999999) 1000000000) }}
      {{- $write = eq (toString $written) "auto" }}
      {{- if and (kindIs "invalid" $written) (or (eq $cpus "unknown") (ne $processes $count)) }}
        {{- $_ := set $to "reason" "DRA315" }}
      {{- end }}
    {{- else if eq $rule "mpi" }}
      {{- $write = and (ne $count 1) (or (kindIs "invalid" $written) (eq (toString $written) "1")) }}
    {{- else if or (eq $rule "flux") (ne $count 1) }}
      {{- $_ := set $to "reason" "DRA315" }}
    {{- end }}
    {{- if $write }}
      {{- $_ := set $to "set" (append $to.set (dict "in" $policy "key" "numProcPerNode" "value" $count)) }}
    {{- end }}
  {{- end }}
{{- end }}
