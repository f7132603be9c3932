"""Parts of the conversion of kustomizations that need no kustomize: patches, changes, texts, and what is not built."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from gpu2dra_migrate.errors import CannotEdit, ProofFailed
from gpu2dra_migrate.kustomize.changes import Change, as_operations, changes, edits_between, merged
from gpu2dra_migrate.kustomize.files import Kustomization, find_kustomizations, root_of
from gpu2dra_migrate.kustomize.graph import Graph
from gpu2dra_migrate.kustomize.patches import aims_at, patches_of, replaced_fields
from gpu2dra_migrate.kustomize.program import BuildError, Kustomize
from gpu2dra_migrate.kustomize.references import configuration, field_specs, namespace_targets, specs_in
from gpu2dra_migrate.kustomize.requests import request_pointers, says_something, without_requests
from gpu2dra_migrate.kustomize.standins import stand_ins
from gpu2dra_migrate.kustomize.texts import listed, with_documents, with_inline_patch, with_operations
from gpu2dra_migrate.kustomize.tree import Tree
from gpu2dra_migrate.manifest import objects
from gpu2dra_migrate.text.patch import copied, patched
from kustomize.shapes import COMPONENT, SHAPES, TARGET, inline, merge, op, workload
from kustomize.trees import write

if TYPE_CHECKING:
    from pathlib import Path


def kustomization(folder: Path, text: str, **files: str) -> Kustomization:
    write(folder, {"kustomization.yaml": text, **{f"{name}.yaml": content for name, content in files.items()}})
    return Kustomization(folder / "kustomization.yaml")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (merge(4), [(0, "/spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu")]),
        (merge("null"), [(0, "/spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu")]),
        (merge(0), []),
        (merge(None), []),
        (merge(None) + "---\n" + merge(2), [(1, "/spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu")]),
        (op("replace", 4), [(0, "/0")]),
        (op("replace", 0), []),
        (op("remove"), [(0, "/0")]),
        (
            op("add", "{limits: {nvidia.com/gpu: 1, cpu: 1}}", "/spec/resources"),
            [(0, "/0/value/limits/nvidia.com~1gpu")],
        ),
        (op("add", "{nvidia.com/gpu: 1}", "/spec/resources/requests"), [(0, "/0/value/nvidia.com~1gpu")]),
        (op("add", "{key: nvidia.com/gpu, operator: Exists}", "/spec/template/spec/tolerations/-"), []),
        (op("add", "x", "/metadata/labels/nvidia.com~1gpu"), []),
        ("{kind: x, spec: {nodeSelector: {nvidia.com/gpu: 'true'}}}", []),
    ],
)
def test_requests_of_patches(text: str, expected: list[tuple[int, str]]) -> None:
    assert [each[:2] for each in request_pointers(objects(text))] == expected


@pytest.mark.parametrize(
    ("document", "pointers", "left"),
    [
        ({"a": {"limits": {"g": 1, "cpu": 1}}}, ["/a/limits/g"], {"a": {"limits": {"cpu": 1}}}),
        ({"k": "x", "a": {"limits": {"g": 1}, "requests": {"g": 1}}}, ["/a/limits/g", "/a/requests/g"], {"k": "x"}),
        ({"c": [{"name": "n", "r": {"g": 1}}]}, ["/c/0/r/g"], {"c": [{"name": "n"}]}),
        ([{"op": "remove"}, {"op": "add"}], ["/0"], [{"op": "add"}]),
        ([{"op": "add", "path": "/r", "value": {"l": {"g": 1}}}], ["/0/value/l/g"], []),
        ([{"op": "add", "path": "/r", "value": {"l": {"g": 1, "c": 1}}}], ["/0/value/l/g"],
         [{"op": "add", "path": "/r", "value": {"l": {"c": 1}}}]),
        ({"a": {}}, [], {"a": {}}),
    ],
)  # fmt: skip
def test_what_is_left_of_a_patch(document: Any, pointers: list[str], left: Any) -> None:
    assert without_requests(document, pointers) == left


def test_which_patches_say_something() -> None:
    assert says_something(objects(merge(4))[0])
    assert not says_something({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "b"}})
    assert not says_something({"kind": "Pod", "spec": {"containers": [{"name": "a"}]}})
    assert says_something({"kind": "Pod", "metadata": {"name": "a", "labels": {"x": "y"}}})
    assert says_something({"kind": "Pod", "$patch": "delete"})


@pytest.mark.parametrize(
    ("have", "wanted", "expected"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1}, {"a": 2, "b": 3}, [Change(("a",), 2), Change(("b",), 3)]),
        ({"a": 1}, {}, [Change(("a",), gone=True)]),
        ({"c": [{"name": "x", "v": 1}]}, {"c": [{"name": "x", "v": 2}]}, [Change(("c", (0, "x"), "v"), 2)]),
        ({"c": [{"name": "x"}]}, {"c": [{"name": "y"}]}, [Change(("c",), [{"name": "y"}])]),
        ({"claims": [{"name": "x", "a": 1}]}, {"claims": [{"name": "x", "a": 2}]},
         [Change(("claims",), [{"name": "x", "a": 2}])]),
        ({"a": True}, {"a": 1}, [Change(("a",), 1)]),
    ],
)  # fmt: skip
def test_changes(have: Any, wanted: Any, expected: list[Change]) -> None:
    assert list(changes(have, wanted)) == expected


@pytest.mark.parametrize(
    ("have", "wanted"),
    [
        ({"spec": {"a": 1}}, {"spec": {"a": 2, "tolerations": [1]}}),
        ({"tolerations": [1]}, {"tolerations": [1, 2]}),
        ({"c": [{"name": "x", "r": {}}, {"name": "y"}]}, {"c": [{"name": "x", "r": {"claims": [1]}}, {"name": "y"}]}),
        ({"a": {"b": {"c": 1}}, "d": 1}, {"a": {"b": {}}}),
    ],
)
def test_operations_carry_changes_out(have: Any, wanted: Any) -> None:
    assert patched(copied(have), as_operations(have, list(changes(have, wanted)))) == wanted


def test_a_merge_patch_says_more() -> None:
    patch = {"kind": "Pod", "spec": {"containers": [{"name": "a", "image": "b"}]}}
    wanted = [
        Change(("spec", "containers", (1, "a"), "resources", "claims"), [1]),
        Change(("spec", "containers", (0, "c"), "resources", "claims"), [2]),
        Change(("spec", "tolerations"), gone=True),
    ]
    assert merged(patch, wanted) == {
        "kind": "Pod",
        "spec": {
            "containers": [
                {"name": "a", "image": "b", "resources": {"claims": [1]}},
                {"name": "c", "resources": {"claims": [2]}},
            ],
            "tolerations": None,
        },
    }
    assert patch == {"kind": "Pod", "spec": {"containers": [{"name": "a", "image": "b"}]}}
    assert merged({"spec": 1}, [Change(("spec", "a"), 1)]) is None
    assert merged({}, [Change(("a", (0, ""), "b"), 1)]) is None


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            [{"op": "a", "path": "/1"}, {"op": "a", "path": "/2"}],
            [{"op": "a", "path": "/2"}, {"op": "b", "path": "/3"}],
        ),
        ([{"op": "a", "path": "/1"}], [{"op": "b", "path": "/3"}, {"op": "c", "path": "/4"}]),
        ({"a": [1, 2, 3], "b": 1}, {"a": [2, 3, 4, 5], "c": 2}),
        ({"c": [{"name": "a", "x": 1}, {"name": "b"}]}, {"c": [{"name": "a", "x": 2}, {"name": "b"}, {"name": "c"}]}),
        ({"a": [1]}, {"a": []}),
        ([1, 2], [3]),
    ],
)
def test_edits_turn_one_into_the_other(old: Any, new: Any) -> None:
    assert patched(copied(old), edits_between(old, new)) == new


HEAD = "resources: [../base]\npatches:\n"


@pytest.mark.parametrize(
    ("text", "before", "after"),
    [
        (HEAD + "- patch: |-\n    a: 1\n    b: 2\n", "a: 1\nb: 2",
         HEAD + "- patch: |-\n    a: 1\n    c: 3\n    d: 4\n"),
        (HEAD + "- patch: |\n    a: 1\n    b: 2\n\n# end\n", "a: 1\nb: 2\n",
         HEAD + "- patch: |\n    a: 1\n    c: 3\n    d: 4\n\n# end\n"),
        (HEAD + "- patch: |-\r\n      a: 1\r\n  target: {}\r\n", "a: 1",
         HEAD + "- patch: |-\r\n      a: 1\r\n      c: 3\r\n      d: 4\r\n  target: {}\r\n"),
        (HEAD + "- patch: |- # why\n    a: 1", "a: 1", HEAD + "- patch: |- # why\n    a: 1\n    c: 3\n    d: 4"),
    ],
)  # fmt: skip
def test_a_block_keeps_its_header_and_indent(text: str, before: str, after: str) -> None:
    assert objects(text)[0]["patches"][0]["patch"] == before
    new = with_inline_patch(text, "/patches/0/patch", "a: 1\nc: 3\nd: 4\n")
    assert new == after
    assert objects(new)[0]["patches"][0]["patch"].rstrip("\n") == "a: 1\nc: 3\nd: 4"


def test_a_quoted_patch_of_one_line_stays_one() -> None:
    text = HEAD + "- patch: '[{op: remove, path: /a}]'\n"
    assert with_inline_patch(text, "/patches/0/patch", "[{op: add, path: /b}]") == text.replace(
        "op: remove, path: /a", "op: add, path: /b"
    )


@pytest.mark.parametrize("head", ["- patch: >-\n    a: 1\n", "- patch: |2\n    a: 1\n", '- patch: "a: 1\\nb: 2"\n'])
def test_other_strings_are_refused(head: str) -> None:
    with pytest.raises((CannotEdit, ProofFailed)):
        with_inline_patch(HEAD + head, "/patches/0/patch", "a: 1\nb: 3\n")


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(CannotEdit):
        with_inline_patch(HEAD + "- path: x\n", "/patches/0/patch", "a: 1\n")
    with pytest.raises(CannotEdit):
        with_operations("- a\n", listed({}, "resources", "x"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("resources:\n- a.yaml\nnamePrefix: x\n", "resources:\n- a.yaml\n- t.yaml\nnamePrefix: x\n"),
        ("resources:\n    -   a.yaml # first\n", "resources:\n    -   a.yaml # first\n    -   t.yaml\n"),
        ("resources: [a.yaml]\n", "resources: [a.yaml, t.yaml]\n"),
        ("bases:\n  - ../base\n", "bases:\n  - ../base\nresources:\n  - t.yaml\n"),
        ("resources: []\n", "resources:\n- t.yaml\n"),
        ("resources:\n- t.yaml\n", "resources:\n- t.yaml\n"),
        ('{"resources": ["a.yaml"]}\n', '{"resources": ["a.yaml", "t.yaml"]}\n'),
        (
            "# only a comment\n---\nresources:\r\n- a.yaml\r\n",
            "# only a comment\n---\nresources:\r\n- a.yaml\r\n- t.yaml\r\n",
        ),
    ],
)
def test_a_line_is_added_in_the_style_of_the_list(text: str, expected: str) -> None:
    data = next(each for each in objects(text) if isinstance(each, dict))
    assert with_operations(text, listed(data, "resources", "t.yaml")) == expected


def test_documents_of_a_patch_are_edited_in_place() -> None:
    text = "# why\n" + merge(4) + "---\n" + merge(1, name="other")
    new = with_documents(text, {1: {**objects(text)[1], "spec": {"replicas": 2}}})
    assert new.startswith("# why\n" + merge(4) + "---\n")
    assert objects(new)[1]["spec"] == {"replicas": 2}


@pytest.mark.parametrize("indent", [None, 2, "\t"])
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_new_operations_of_a_patch_in_json_are_json(indent: int | str | None, separators: tuple[str, str]) -> None:
    separators = separators if indent is None else (",", ": ")
    one, two = {"op": "replace", "path": "/a", "value": "2"}, {"op": "add", "path": "/b", "value": 3}
    new = [two, {"op": "add", "path": "/c", "value": {"d": [{"e": "f"}]}}]
    text = json.dumps([one, two], indent=indent, separators=separators) + "\n"
    assert with_documents(text, {0: new}) == json.dumps(new, indent=indent, separators=separators) + "\n"


def test_a_new_operation_is_a_line_where_each_is_one() -> None:
    text = '[\n  {"op": "replace", "path": "/a", "value": "2"},\n  {"op": "remove", "path": "/b"}\n]\n'
    new = with_documents(text, {0: [{"op": "remove", "path": "/b"}, {"op": "add", "path": "/c", "value": ["d"]}]})
    assert new == '[\n  {"op": "remove", "path": "/b"},\n  {"op": "add", "path": "/c", "value": ["d"]}\n]\n'


def test_patches_of_all_fields(tmp_path: Path) -> None:
    text = (
        "patches:\n- path: a.yaml\n" + TARGET + inline(op("remove"), "- patch: |-") + "- path: gone.yaml\n- 1\n"
        "patchesStrategicMerge:\n- a.yaml\n" + inline(merge(2), "- |-") + "patchesJson6902:\n- path: a.yaml\n"
    )
    one = kustomization(tmp_path, text, a=merge(4))
    found = [(patch.file and patch.file.name, patch.pointer) for patch in patches_of(one)]
    assert found == [
        ("a.yaml", ""), (None, "/patchesStrategicMerge/1"), ("a.yaml", ""), (None, "/patches/1/patch"), ("a.yaml", ""),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("target", "obj", "expected"),
    [
        ("{kind: Deployment}", workload(), True),
        ("{kind: Deployment, name: vllm}", workload(name="a-vllm-b"), True),
        ("{kind: Deploy.*, name: v.*}", workload(), True),
        ("{kind: Job}", workload(), False),
        ("{name: other}", workload(), False),
        ("{labelSelector: app=x}", workload(), True),
        ("{kind: '('}", workload(), False),
    ],
)
def test_what_a_patch_may_be_about(tmp_path: Path, target: str, obj: str, expected: bool) -> None:
    one = kustomization(tmp_path, "patches:\n- path: a.yaml\n  target: " + target + "\n", a=op("remove"))
    (patch,) = patches_of(one)
    assert aims_at(patch, patch.documents()[0], objects(obj)[0]) is expected


def test_a_merge_patch_is_about_what_it_names(tmp_path: Path) -> None:
    (patch,) = patches_of(kustomization(tmp_path, "patches:\n- path: a.yaml\n", a=merge(1)))
    document = patch.documents()[0]
    assert aims_at(patch, document, objects(workload(name="p-vllm"))[0])
    assert not aims_at(patch, document, objects(workload(name="other"))[0])
    assert not aims_at(patch, document, objects(workload(kind="Job"))[0])


def test_replacements_and_variables_of_the_request(tmp_path: Path) -> None:
    text = """\
replacements:
- source: {kind: ConfigMap, name: n}
  targets: [{fieldPaths: [spec.replicas]}]
- source: {kind: ConfigMap, name: n}
  targets: [{fieldPaths: ['spec.containers.0.resources.limits.[nvidia.com/gpu]']}]
vars:
- {name: N, fieldref: {fieldpath: 'spec.limits[nvidia.com/gpu]'}}
"""
    assert list(replaced_fields(kustomization(tmp_path, text))) == ["/replacements/1", "/vars/0"]


CLAIMED = """\
apiVersion: kubeflow.org/v1
kind: PyTorchJob
metadata: {name: t}
spec:
  pytorchReplicaSpecs:
    Worker:
      template:
        spec:
          containers: [{name: pytorch}]
          resourceClaims: [{name: a, resourceClaimTemplateName: x}, {name: b, resourceClaimTemplateName: y}]
"""


def test_where_names_of_templates_are_used() -> None:
    specs = set(field_specs(objects(CLAIMED)))
    path = "spec/pytorchReplicaSpecs/Worker/template/spec/resourceClaims/resourceClaimTemplateName"
    assert specs == {("kubeflow.org", "PyTorchJob", path)}
    assert set(specs_in(configuration(specs))) == specs
    assert list(specs_in({})) == []


def test_the_namespace_of_templates_is_replaced_with_that_of_their_workload() -> None:
    workload_ = objects(workload())[0]
    select = {"kind": "Deployment"}
    replacements = [
        {"targets": [{"select": select, "fieldPaths": ["metadata.namespace"], "options": {"create": True}}]}
    ]
    (operation,) = namespace_targets(replacements, workload_, ["t"])
    assert operation == {
        "op": "add",
        "path": "/replacements/0/targets/-",
        "value": {
            "select": {"kind": "ResourceClaimTemplate", "name": "t"},
            "fieldPaths": ["metadata.namespace"],
            "options": {"create": True},
        },
    }
    select["kind"] = "Job"
    assert namespace_targets(replacements, workload_, ["t"]) == []
    assert namespace_targets("x", workload_, ["t"]) == []


def test_stand_ins_hold_the_keys_that_are_read(tmp_path: Path) -> None:
    text = """\
configMapGenerator:
- {name: s, envs: [gone.env, there.env], files: [key=conf/gone.txt]}
secretGenerator:
- {name: t, env: ../outside.env}
replacements:
- source: {kind: ConfigMap, name: s, fieldPath: data.SOME_KEY}
vars:
- {name: V, objref: {kind: ConfigMap, name: s}, fieldref: {fieldpath: data.other}}
"""
    one = kustomization(tmp_path, text)
    (tmp_path / "there.env").write_text("a=b\n")
    found = {path.relative_to(tmp_path).as_posix(): text for _, path, text in stand_ins([one])}
    assert found == {"gone.env": "SOME_KEY=stand-in-some-key\nother=stand-in-other\n", "conf/gone.txt": "stand-in\n"}


def graph(folder: Path, files: dict[str, str]) -> Graph:
    return Graph(find_kustomizations(write(folder, files)))


def test_what_makes_up_a_kustomization(tmp_path: Path) -> None:
    found = graph(tmp_path, SHAPES["component"].files)
    one = found.at(tmp_path / "over")
    assert one is not None
    nodes, files = found.closure(one)
    assert [node.folder.name for node in nodes] == ["base", "big", "over"]
    named = {"base/deploy.yaml", "big/p.yaml", *(f"{name}/kustomization.yaml" for name in ("base", "big", "over"))}
    assert {path.relative_to(tmp_path).as_posix() for path in files} == named
    assert [node.folder.name for node in found.components(one)] == ["big"]


def test_kustomizations_that_share_nothing_are_apart(tmp_path: Path) -> None:
    files = {f"{top}/{name}": text for top in ("x", "y") for name, text in SHAPES["merge-file"].files.items()}
    found = graph(tmp_path, files)
    sets = [[one.folder.relative_to(tmp_path).as_posix() for one in each] for each in found.connected(found.all)]
    assert sorted(sets) == [["x/base", "x/over"], ["y/base", "y/over"]]


def test_circles_and_long_chains_end(tmp_path: Path) -> None:
    circle = "resources: [../b]\ncomponents: [../b]\n"
    files = {"a/kustomization.yaml": circle, "b/kustomization.yaml": "resources: [../a, .]\ncomponents: [../a]\n"}
    files |= {f"d{n}/kustomization.yaml": f"resources: [../d{n + 1}]\n" for n in range(1200)}
    found = graph(tmp_path, {**files, "d1200/kustomization.yaml": COMPONENT})
    first, chain = found.at(tmp_path / "a"), found.at(tmp_path / "d0")
    assert first is not None
    assert chain is not None
    assert len(found.closure(first)[0]) == 2
    assert len(found.closure(chain)[0]) == 1201
    assert [node.folder.name for node in found.components(first)] == ["b", "a"]


@pytest.mark.parametrize(
    ("text", "remote", "foreign"),
    [
        ("resources: [a.yaml]\n", "", ""),
        ("resources: ['https://example.com/x?ref=v1']\n", "https://example.com/x?ref=v1", ""),
        ("components: ['git@example.com:x']\n", "git@example.com:x", ""),
        ("resources: [gone.yaml]\n", "gone.yaml", ""),
        ("resources: [a.yaml]\ntransformers: [t.yaml]\n", "", "transformers"),
        ("helmCharts: [{name: c}]\n", "", "helmCharts"),
        ("patches: [\n", "", ""),
        ("- a\n", "", ""),
        ("resources: {a: b}\npatches: 1\n", "", ""),
    ],
)
def test_what_is_not_built(tmp_path: Path, text: str, remote: str, foreign: str) -> None:
    found = graph(tmp_path, {"kustomization.yaml": text, "a.yaml": workload()})
    (one,) = found.all
    assert (found.remote(one), found.foreign(one)) == (remote, foreign)
    assert list(patches_of(one)) == []


@dataclass(frozen=True)
class Restricted(Kustomize):
    """Says of every kustomization that it names a file that it may not name."""

    def build(self, folder: Path, *, anywhere: bool = False) -> list[Any]:
        """Build it only where that is allowed."""
        if anywhere:
            return [{"kind": "List", "items": []}]
        raise BuildError(f"security; file '/x' is not in or below '{folder}'")


@pytest.mark.parametrize(
    ("text", "reads"),
    [
        ("resources: [../a.yaml]\n", True),
        ("resources: [../a.yaml]\nlabels: [{fields: [{path: spec/x}]}]\n", True),
        ("resources: [../a.yaml]\npatches: [{path: ../../gone.yaml}]\n", False),
        ("resources: [../a.yaml]\npatches: [{path: /gone.yaml}]\n", False),
        ("resources: [../a.yaml]\nconfigMapGenerator: [{name: c, files: [k=../../gone]}]\n", False),
    ],
)
def test_files_beside_a_kustomization_are_read_from_its_copy_only(tmp_path: Path, text: str, reads: bool) -> None:
    found = graph(tmp_path / "tree", {"o/kustomization.yaml": text, "a.yaml": workload()})
    tree = Tree(found, found.all, Restricted(("kustomize",)), tmp_path / "room", lambda _: True)
    if reads:
        assert tree.before(found.all[0])
    else:
        with pytest.raises(BuildError, match="not in or below"):
            tree.before(found.all[0])


def test_where_kustomizations_are_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"app/" + name: text for name, text in SHAPES["merge-file"].files.items()})
    (tmp_path / "elsewhere").mkdir()
    base = tmp_path / "app" / "base"
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert root_of(base) == tmp_path / "app"
    monkeypatch.chdir(tmp_path)
    assert root_of(base) == tmp_path
    assert root_of(tmp_path / "elsewhere") is None
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    assert root_of(base) == tmp_path
    assert [file.parent.name for file in find_kustomizations(base)] == ["base", "over"]
