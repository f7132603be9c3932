"""What the chart renders: goldens, the same from both versions of Helm and every time, and what values promise."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING

import pytest
import yaml

import gpu2dra_migrate
from chart import generate
from controlplane.client import Object
from controlplane.helm import CHART, NAMESPACE, RELEASE, Helm, objects, one
from gpu2dra.converted import ANNOTATION
from gpu2dra.policy import BUILT_IN
from gpu2dra.policy.load import load
from gpu2dra.skips import CONVERT_ANNOTATION, SYSTEM_NAMESPACES
from gpu2dra_webhook.cli import command
from gpu2dra_webhook.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

SETS = sorted(generate.value_sets())
EXTRA_NAMESPACES = {"opt-out": {"team-legacy", "sandbox"}}


def by_name(rendered: list[Object]) -> dict[tuple[str, str], Object]:
    """Return objects by kind and name: the two versions of Helm sort those of one kind differently."""
    found = {(obj["kind"], obj["metadata"]["name"]): obj for obj in rendered}
    assert len(found) == len(rendered), "two objects have one name"
    return found


def pod_spec(rendered: list[Object]) -> Object:
    """Return the PodSpec of the Deployment."""
    spec: Object = one(rendered, "Deployment")["spec"]["template"]["spec"]
    return spec


@pytest.fixture(scope="module")
def default(newest: Helm) -> list[Object]:
    """Return what the default values render to."""
    return newest.render()


@pytest.mark.parametrize("name", SETS)
def test_a_golden_is_what_the_chart_renders(helm: Helm, name: str) -> None:
    kept = objects((generate.GOLDEN / f"{name}.yaml").read_text("utf-8"))
    assert by_name(objects(generate.golden(helm, name))) == by_name(kept), "make chart writes the goldens again"


@pytest.mark.parametrize("name", SETS)
def test_rendering_twice_gives_the_same_bytes(helm: Helm, name: str) -> None:
    assert generate.golden(helm, name) == generate.golden(helm, name)


@pytest.mark.parametrize("name", SETS)
def test_lint_has_nothing_to_say(helm: Helm, name: str) -> None:
    printed = helm.run("lint", "--strict", CHART, values=generate.value_sets()[name])
    assert "1 chart(s) linted, 0 chart(s) failed" in printed
    assert re.findall(r"\[(?:WARNING|ERROR)\].*", printed) == []


def test_a_packaged_chart_renders_the_same(helm: Helm, tmp_path: Path) -> None:
    helm.run("package", CHART, "--destination", tmp_path)
    (package,) = tmp_path.iterdir()
    assert package.name == f"gpu2dra-{gpu2dra_migrate.__version__}.tgz"
    place = ("--namespace", NAMESPACE, "--kube-version", "1.34.0")
    packaged = objects(helm.run("template", RELEASE, package, *place))
    assert by_name(packaged) == by_name(helm.render())


def test_no_golden_holds_a_secret() -> None:
    texts = [path.read_text("utf-8") for path in generate.GOLDEN.glob("*.yaml")]
    assert [text for text in texts if "PRIVATE KEY" in text] == []


def test_the_chart_has_the_version_of_the_distribution() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert (chart["version"], chart["appVersion"]) == (gpu2dra_migrate.__version__,) * 2


@pytest.mark.parametrize("name", SETS)
def test_every_object_carries_the_common_labels(newest: Helm, name: str) -> None:
    wanted = {
        f"app.kubernetes.io/{part}" for part in ("name", "instance", "version", "managed-by", "part-of", "component")
    }
    for obj in newest.render(generate.value_sets()[name]):
        assert wanted <= set(obj["metadata"]["labels"]), (obj["kind"], obj["metadata"]["name"])


@pytest.mark.parametrize("mode", [None, "", "opt-int"])
def test_only_opt_out_itself_converts_what_is_not_labelled(newest: Helm, mode: str | None) -> None:
    rendered = newest.render({"namespaces": {"mode": mode}}, "--skip-schema-validation")
    created, _ = one(rendered, "MutatingWebhookConfiguration")["webhooks"]
    convert = {"key": CONVERT_ANNOTATION, "operator": "In", "values": ["true"]}
    assert convert in created["namespaceSelector"]["matchExpressions"]
    assert "--namespace-mode=opt-in" in pod_spec(rendered)["containers"][0]["args"]


@pytest.mark.parametrize("name", SETS)
def test_system_namespaces_and_the_own_one_are_never_selected(newest: Helm, name: str) -> None:
    configuration = one(newest.render(generate.value_sets()[name]), "MutatingWebhookConfiguration")
    for webhook in configuration["webhooks"]:
        by_key = {rule["key"]: rule for rule in webhook["namespaceSelector"]["matchExpressions"]}
        names = by_key["kubernetes.io/metadata.name"]
        assert names["operator"] == "NotIn"
        assert set(names["values"]) == SYSTEM_NAMESPACES | {NAMESPACE} | EXTRA_NAMESPACES.get(name, set())


def test_the_namespace_of_the_release_is_left_out_whatever_it_is_called(newest: Helm) -> None:
    rendered = objects(newest.run("template", "a", CHART, "--namespace", "somewhere-else"))
    for webhook in one(rendered, "MutatingWebhookConfiguration")["webhooks"]:
        assert "somewhere-else" in webhook["namespaceSelector"]["matchExpressions"][0]["values"]


def test_a_name_is_short_enough_for_every_service(newest: Helm) -> None:
    rendered = objects(newest.run("template", "r" * 53, CHART, "--namespace", NAMESPACE))
    services = [obj["metadata"]["name"] for obj in rendered if obj["kind"] == "Service"]
    assert [len(name) for name in services] == [55, 63]
    called = one(rendered, "MutatingWebhookConfiguration")["webhooks"][0]["clientConfig"]["service"]["name"]
    assert called == services[0]


def test_a_large_number_is_written_out(newest: Helm) -> None:
    def largest(part: Object) -> Object:
        found = {}
        for name, inner in part.get("properties", {}).items():
            if inner.get("type") == "integer":
                found[name] = inner.get("maximum", 6_000_000)
            elif deeper := largest(inner):
                found[name] = deeper
        return found

    values = largest(json.loads(generate.SCHEMA.read_text("utf-8")))
    values["server"]["metricsPort"] -= 1
    values["certificates"]["self"]["leafLifetimeSeconds"] -= 4_000_000
    rendered = newest.template(values | {"podDisruptionBudget": {"maxUnavailable": 5_000_000}})
    assert re.findall(r".*\de\+\d.*", rendered) == []
    assert {"5000000", "6000000", "2000000", "12000015"} <= set(re.findall(r"\d+", rendered))


def test_a_name_is_a_text_whatever_it_looks_like(newest: Helm) -> None:
    def shape(value: object) -> object:
        if isinstance(value, dict):
            return {key: shape(inner) for key, inner in value.items()}
        return [shape(inner) for inner in value] if isinstance(value, list) else type(value)

    def rendered(name: str) -> list[object]:
        values = {
            "fullnameOverride": name, "nameOverride": name, "priorityClassName": name,
            "serviceAccount": {"name": name}, "webhook": {"name": name}, "imagePullSecrets": [{"name": name}],
            "spread": [{"topologyKey": name}], "namespaces": {"excluded": [name]}, "commonLabels": {"a": name},
            "certificates": {
                "mode": "provided", "provided": {"secretName": name},
                "client": {"configMap": name, "key": name, "names": [f"{name}: #"]},
            },
        }  # fmt: skip
        place = ("--namespace", name)
        return [shape(obj) for obj in objects(newest.run("template", name, CHART, *place, values=values))]

    usual = rendered("usual")
    assert [name for name in ("true", "null", "off", "y", "inf") if rendered(name) != usual] == []


def test_there_is_one_configuration_that_sorts_last_with_an_entry_for_each_operation(default: list[Object]) -> None:
    configuration = one(default, "MutatingWebhookConfiguration")
    assert configuration["metadata"]["name"] == "zz-gpu2dra"
    shown = [
        (hook["name"], hook["rules"], hook["failurePolicy"], hook["reinvocationPolicy"], hook["sideEffects"])
        for hook in configuration["webhooks"]
    ]
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "scope": "Namespaced"}
    assert shown == [
        ("pods.create.gpu2dra.dev", [{**pods, "operations": ["CREATE"]}], "Fail", "IfNeeded", "NoneOnDryRun"),
        ("pods.update.gpu2dra.dev", [{**pods, "operations": ["UPDATE"]}], "Ignore", "IfNeeded", "NoneOnDryRun"),
    ]
    assert {hook["timeoutSeconds"] for hook in configuration["webhooks"]} == {5}
    assert {hook["matchPolicy"] for hook in configuration["webhooks"]} == {"Equivalent"}


def test_the_entry_for_updates_ignores_failures_whatever_the_value_says(newest: Helm) -> None:
    for policy in ("Fail", "Ignore"):
        webhooks = one(newest.render({"webhook": {"failurePolicy": policy}}), "MutatingWebhookConfiguration")[
            "webhooks"
        ]
        assert [hook["failurePolicy"] for hook in webhooks] == [policy, "Ignore"]


def test_the_conditions_spell_the_annotations_as_the_core_does(default: list[Object]) -> None:
    created, updated = one(default, "MutatingWebhookConfiguration")["webhooks"]
    expressions = {condition["name"]: condition["expression"] for condition in created["matchConditions"]}
    assert f"'{CONVERT_ANNOTATION}'" in expressions["not-opted-out"]
    assert f"'{ANNOTATION}' in oldObject" in updated["matchConditions"][0]["expression"]
    assert created["namespaceSelector"]["matchExpressions"][1]["key"] == CONVERT_ANNOTATION
    assert len(updated["namespaceSelector"]["matchExpressions"]) == 1


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        ({"match": {"resources": ["nvidia.com/gpu.shared"]}, "device": "d"}, "['nvidia.com/gpu.shared']"),
        ({"match": {"resources": ["nvidia.com/gpu.shared"]}, "skip": "no"}, None),
        ({"match": {"resources": ["nvidia.com/gpu*", "*"]}, "device": "d"}, None),
        ({"match": {"resources": ["nvidia.com/mig-1g.5gb"]}, "device": "d"}, "['nvidia.com/mig-1g.5gb']"),
        ({"match": {"namespaces": ["a"]}, "device": "d"}, None),
        (
            {"match": {"resources": ["volcano.sh/vgpu-number", "nvidia.com/gpu", "nvidia.com/A_B"]}, "device": "d"},
            "['nvidia.com/A_B', 'volcano.sh/vgpu-number']",
        ),
    ],
)
def test_a_policy_adds_the_names_that_it_spells_out_and_has_a_device_for(
    newest: Helm, rule: Object, named: str | None
) -> None:
    policy = {
        "apiVersion": "gpu2dra.dev/v1alpha1",
        "kind": "ConversionPolicy",
        "devices": [{"name": "d", "deviceClassName": "d.example.com"}],
        "rules": [rule],
    }
    rendered = newest.render({"policy": policy})
    for webhook in one(rendered, "MutatingWebhookConfiguration")["webhooks"]:
        (asks,) = (item["expression"] for item in webhook["matchConditions"] if item["name"] == "asks-for-gpu")
        assert re.findall(r"name in (\[[^\]]*\])", asks) == ([named] if named else [])
    mounted = yaml.safe_load(one(rendered, "ConfigMap")["data"]["policy.yaml"])
    assert mounted == policy
    assert "--policy-file=/etc/gpu2dra/policy/policy.yaml" in pod_spec(rendered)["containers"][0]["args"]


def test_without_a_policy_the_file_says_what_holds_then(default: list[Object]) -> None:
    mounted = yaml.safe_load(one(default, "ConfigMap")["data"]["policy.yaml"])
    assert load(mounted) == BUILT_IN
    assert "--policy-file=/etc/gpu2dra/policy/policy.yaml" in pod_spec(default)["containers"][0]["args"]


@pytest.mark.parametrize(
    ("certificates", "bundle", "annotation", "writes"),
    [
        ({"mode": "self"}, None, None, True),
        ({"mode": "certManager"}, None, f"{NAMESPACE}/gpu2dra", False),
        ({"mode": "provided", "provided": {"secretName": "s"}}, None, None, True),
        (
            {"mode": "provided", "provided": {"secretName": "s", "caBundle": "-----BEGIN CERTIFICATE-----\nx\n"}},
            "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCngK", None, False,
        ),
    ],
)  # fmt: skip
def test_one_party_alone_writes_the_ca_bundle(
    newest: Helm, certificates: Object, bundle: str | None, annotation: str | None, writes: bool
) -> None:
    rendered = newest.render({"certificates": certificates})
    configuration = one(rendered, "MutatingWebhookConfiguration")
    assert {hook["clientConfig"].get("caBundle") for hook in configuration["webhooks"]} == {bundle}
    assert configuration["metadata"].get("annotations", {}).get("cert-manager.io/inject-ca-from") == annotation
    rules = one(rendered, "ClusterRole")["rules"]
    assert any("mutatingwebhookconfigurations" in rule["resources"] for rule in rules) is writes


def test_no_right_is_a_wildcard_and_names_are_given_where_kubernetes_takes_them(newest: Helm) -> None:
    for name in SETS:
        rendered = newest.render(generate.value_sets()[name])
        roles = [obj for obj in rendered if obj["kind"] in ("Role", "ClusterRole")]
        rules = [rule for role in roles for rule in role["rules"]]
        assert "*" not in json.dumps(rules)
        unnamed = [rule for rule in rules if "resourceNames" not in rule]
        named = {"secrets", "leases", "mutatingwebhookconfigurations"}
        assert {tuple(rule["verbs"]) for rule in unnamed if named & set(rule["resources"])} <= {("create",)}


def test_the_pods_keep_to_the_restricted_pod_security_standard(default: list[Object]) -> None:
    hook = one(default, "Pod")
    for spec in (pod_spec(default), hook["spec"]):
        assert spec["securityContext"]["runAsNonRoot"] is True
        assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in spec["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}


@pytest.mark.parametrize(("server", "grace"), [({}, 120), ({"preStopSeconds": 30, "drainSeconds": 5}, 50)])
def test_a_pod_has_time_for_the_pause_and_the_drain(newest: Helm, server: Object, grace: int) -> None:
    spec = pod_spec(newest.render({"server": server}))
    pause = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    (drain,) = (arg for arg in spec["containers"][0]["args"] if arg.startswith("--drain-seconds="))
    assert spec["terminationGracePeriodSeconds"] == grace > pause + int(drain.split("=")[1])


def test_an_update_never_takes_a_replica_before_its_successor_is_ready(default: list[Object]) -> None:
    assert one(default, "Deployment")["spec"]["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}


def settings(rendered: list[Object]) -> Settings:
    """Return what the webhook makes of the arguments of its container."""
    found: list[Settings] = []
    command(found.append).main(pod_spec(rendered)["containers"][0]["args"], "gpu2dra-webhook", standalone_mode=False)
    return found[0]


@pytest.mark.parametrize("name", SETS)
def test_the_webhook_understands_its_arguments(newest: Helm, name: str) -> None:
    values = generate.value_sets()[name]
    rendered = newest.render(values)
    taken = settings(rendered)
    containers = {port["name"]: port["containerPort"] for port in pod_spec(rendered)["containers"][0]["ports"]}
    assert containers == {"https": taken.port, "metrics": taken.metrics_port}
    assert taken.webhook_configuration == one(rendered, "MutatingWebhookConfiguration")["metadata"]["name"]
    assert taken.namespace_mode == values.get("namespaces", {}).get("mode", "opt-in")
    assert taken.excluded_namespaces == EXTRA_NAMESPACES.get(name, set())
    mode = values.get("certificates", {}).get("mode", "self")
    assert (taken.certificates, taken.manage_ca_bundle) == {
        "self": ("self", True), "certManager": ("files", False), "provided": ("files", name == "provided-ca-crt"),
    }[mode]  # fmt: skip


@pytest.mark.parametrize("name", SETS)
def test_every_file_that_the_webhook_reads_is_mounted_read_only(newest: Helm, name: str) -> None:
    rendered = newest.render(generate.value_sets()[name])
    taken, spec = settings(rendered), pod_spec(rendered)
    volumes = {volume["name"]: set(volume) - {"name"} for volume in spec["volumes"]}
    mounts = {mount["mountPath"]: mount for mount in spec["containers"][0]["volumeMounts"]}
    for path in filter(None, (taken.policy_file, taken.certificate_dir, taken.client_ca_file)):
        (mount,) = (mount for folder, mount in mounts.items() if path.is_relative_to(folder))
        assert mount["readOnly"] is True
        assert volumes[mount["name"]] <= {"configMap", "secret"}
    assert {mount["name"] for mount in mounts.values()} == set(volumes)


def test_without_values_the_webhook_is_told_what_it_would_do_anyway(default: list[Object]) -> None:
    taken = settings(default)
    own = {"service_name": "gpu2dra", "webhook_configuration": "zz-gpu2dra", "policy_file": taken.policy_file}
    assert taken == dataclasses.replace(Settings(), **own)  # type: ignore[arg-type]


def test_no_field_is_left_without_a_value(newest: Helm) -> None:
    def missing(value: object, path: str) -> list[str]:
        if isinstance(value, dict):
            return [found for key, inner in value.items() for found in missing(inner, f"{path}/{key}")]
        if isinstance(value, list):
            return [found for inner in value for found in missing(inner, f"{path}/*")]
        return [path] if value is None else []

    empty = {"spread": [], "nodeSelector": {"kubernetes.io/os": None}, "resources": {}, "securityContext": {}}
    sets = {name: generate.value_sets()[name] for name in SETS if name != "everything"} | {"empty": empty}
    found = {path for values in sets.values() for obj in newest.render(values) for path in missing(obj, obj["kind"])}
    assert found == set()
    # What OpenShift chooses has to be null to be left out.
    hidden = [
        found for obj in newest.render(generate.value_sets()["everything"]) for found in missing(obj, obj["kind"])
    ]
    assert {path.rpartition("/")[2] for path in hidden} <= {"runAsUser", "runAsGroup", "fsGroup"}


def test_on_the_hosts_network_an_update_frees_a_port_first(newest: Helm) -> None:
    spec = one(newest.render({"hostNetwork": True}), "Deployment")["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 1, "maxSurge": 0}
    assert spec["template"]["spec"]["dnsPolicy"] == "ClusterFirstWithHostNet"


@pytest.mark.parametrize(
    ("image", "expected"),
    [
        ({}, f"gpu2dra-webhook:{gpu2dra_migrate.__version__}"),
        ({"registry": "r.example.com", "repository": "a/b", "tag": "x"}, "r.example.com/a/b:x"),
        ({"tag": "x", "digest": f"sha256:{'0' * 64}"}, f"gpu2dra-webhook@sha256:{'0' * 64}"),
    ],
)
def test_the_image_is_named_by_tag_or_by_digest(newest: Helm, image: Object, expected: str) -> None:
    rendered = newest.render({"image": image})
    used = {
        container["image"]
        for spec in (pod_spec(rendered), one(rendered, "Pod")["spec"])
        for container in spec["containers"]
    }
    assert used == {expected}


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ({"replicas": 1}, {"PodDisruptionBudget"}),
        ({"podDisruptionBudget": {"enabled": False}}, {"PodDisruptionBudget"}),
        ({"priorityClassName": "platform"}, {"ResourceQuota"}),
        ({"criticalPodsQuota": False}, {"ResourceQuota"}),
        ({"serviceAccount": {"create": False}}, {"ServiceAccount"}),
        ({"rbac": {"create": False}}, {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}),
        (
            {"templates": {"janitor": False}, "certificates": {"mode": "provided", "provided": {"secretName": "s"}}},
            {"Role", "RoleBinding"},
        ),
    ],
)
def test_a_value_takes_objects_away(newest: Helm, default: list[Object], values: Object, kinds: set[str]) -> None:
    left = {obj["kind"] for obj in newest.render(values)}
    assert {obj["kind"] for obj in default} - left == kinds


@pytest.mark.parametrize("name", [name for name in SETS if name != "everything"])
def test_only_the_operators_kinds_are_not_kubernetes_own(newest: Helm, name: str) -> None:
    groups = {obj["apiVersion"].split("/")[0] for obj in newest.render(generate.value_sets()[name])}
    allowed = {"v1", "apps", "policy", "rbac.authorization.k8s.io", "admissionregistration.k8s.io"}
    assert groups - allowed == ({"cert-manager.io"} if name.startswith("cert-manager") else set())


@pytest.mark.parametrize(
    ("values", "said", "unsaid"),
    [
        ({}, "kubectl label namespace NAMESPACE gpu2dra.dev/convert=true", "with one replica"),
        ({}, "kubectl delete mutatingwebhookconfiguration zz-gpu2dra", "failurePolicy is Ignore"),
        ({"namespaces": {"mode": "opt-out"}}, "gpu2dra.dev/convert=false", "gpu2dra.dev/convert=true"),
        ({"replicas": 1}, "with one replica", "failurePolicy is Ignore"),
        ({"webhook": {"failurePolicy": "Ignore"}}, "failurePolicy is Ignore", "with one replica"),
        ({"image": {"repository": "x"}}, "helm test gpu2dra", "image.repository"),
        ({"templates": {"janitor": False}}, "the janitor is off", "with one replica"),
    ],
)
def test_the_notes_tell_what_to_do_next(newest: Helm, values: Object, said: str, unsaid: str) -> None:
    notes = newest.notes(values)
    assert said in notes
    assert unsaid not in notes


def test_labels_of_the_pods_come_before_those_of_every_object(newest: Helm) -> None:
    values = {
        "commonLabels": {"team": "a", "tier": "x"}, "podLabels": {"team": "b"}, "webhook": {"labels": {"team": "c"}},
        "podAnnotations": {"kubectl.kubernetes.io/default-container": "mine"},
    }  # fmt: skip
    text = newest.template(values)
    rendered = objects(text)
    pods = one(rendered, "Deployment")["spec"]["template"]["metadata"]
    labels = {
        "pods": pods["labels"],
        "hook": one(rendered, "MutatingWebhookConfiguration")["metadata"]["labels"],
        "role": one(rendered, "Role")["metadata"]["labels"],
    }
    shown = {name: (found["team"], found["tier"]) for name, found in labels.items()}
    assert shown == {"pods": ("b", "x"), "hook": ("c", "x"), "role": ("a", "x")}
    assert pods["annotations"] == {"kubectl.kubernetes.io/default-container": "mine"}
    assert (text.count("team: b"), text.count("default-container")) == (1, 1)  # a key that stands twice is no YAML


def selects(selector: Object, pod: Object) -> bool:
    """Whether the labels of a selector are all those of a pod's metadata."""
    labels: Object = selector.get("matchLabels", selector)
    return bool(labels.items() <= pod["labels"].items())


@pytest.mark.parametrize("name", SETS)
def test_nothing_takes_the_test_pod_for_a_replica(newest: Helm, name: str) -> None:
    rendered = newest.render(generate.value_sets()[name] | {"networkPolicy": {"enabled": True}})
    replica, test = one(rendered, "Deployment")["spec"]["template"]["metadata"], one(rendered, "Pod")["metadata"]
    selectors = [obj["spec"]["selector"] for obj in rendered if obj["kind"] in ("Service", "PodDisruptionBudget")]
    selectors += [
        one(rendered, "Deployment")["spec"]["selector"],
        one(rendered, "NetworkPolicy")["spec"]["podSelector"],
    ]
    selectors += [entry["labelSelector"] for entry in pod_spec(rendered)["topologySpreadConstraints"]]
    assert [selects(selector, replica) for selector in selectors] == [True] * len(selectors)
    assert [selects(selector, test) for selector in selectors] == [False] * len(selectors)


@pytest.mark.parametrize(("client", "port"), [({}, "https"), ({"configMap": "ca"}, "metrics")])
def test_the_network_policy_lets_the_test_pod_ask_where_it_does(newest: Helm, client: Object, port: str) -> None:
    peer = {"ipBlock": {"cidr": "10.0.0.0/28"}}
    policy = {"enabled": True, "admissionFrom": [peer], "metricsFrom": [peer]}
    rendered = newest.render({"networkPolicy": policy, "certificates": {"client": client}})
    test = one(rendered, "Pod")["metadata"]
    rules = {rule["ports"][0]["port"]: rule["from"] for rule in one(rendered, "NetworkPolicy")["spec"]["ingress"]}
    assert all(peers[0] == peer for peers in rules.values())
    let_in = [name for name, peers in rules.items() if any(selects(other["podSelector"], test) for other in peers[1:])]
    assert let_in == [port]
    assert ("-metrics." in one(rendered, "Pod")["spec"]["containers"][0]["args"][1]) is (port == "metrics")


def test_a_network_policy_without_peers_lets_everyone_in(newest: Helm) -> None:
    rules = one(newest.render({"networkPolicy": {"enabled": True}}), "NetworkPolicy")["spec"]["ingress"]
    assert [set(rule) for rule in rules] == [{"ports"}] * 2


def test_the_test_pod_holds_no_token_and_asks_the_service(default: list[Object]) -> None:
    pod = one(default, "Pod")
    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert pod["spec"]["automountServiceAccountToken"] is False
    script, url = pod["spec"]["containers"][0]["args"]
    compile(script, "readiness.py", "exec")
    assert url == f"https://gpu2dra.{NAMESPACE}.svc:443/readyz?verbose"
