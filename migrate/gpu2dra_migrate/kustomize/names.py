"""Names as files write them: before prefixes, suffixes and namespaces change them in the build."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from gpu2dra.model import Object, Operation
from gpu2dra.pointers import replace
from gpu2dra.templates import KIND, WORKLOAD_ANNOTATION, canonical_spec
from gpu2dra_migrate.kustomize.files import Kustomization
from gpu2dra_migrate.kustomize.program import BuildError
from gpu2dra_migrate.kustomize.square import Key, Wanted, claim_pointers, is_ours, key_of
from gpu2dra_migrate.kustomize.work import Work
from gpu2dra_migrate.text.patch import copied, patched, same

_CHANGING = (
    "namePrefix", "nameSuffix", "namespace", "labels", "commonLabels", "commonAnnotations", "images", "replicas",
    "replacements", "vars", "sortOptions", "buildMetadata",
)  # fmt: skip
"""Fields of a kustomization that change what its patches have made."""


class Names:
    """What `one` builds (`have`), and under which names its patches and resources know that."""

    def __init__(self, one: Kustomization, work: Work, have: Sequence[Object]) -> None:
        self._work = work
        self._have = have
        self._plain = _aligned(one, work, have)
        self._built_names = {
            (key_of(obj)[2], key_of(obj)[3]): self._plain[key_of(obj)] for obj in have if obj.get("kind") == KIND
        }
        self._new: list[Object] = []
        self._shared: dict[str, str] = {}

    def metadata(self, obj: Object) -> Object:
        """Return name and namespace of a built object before this layer changes them."""
        before = self._plain[key_of(obj)].get("metadata", {})
        return {key: before[key] for key in ("name", "namespace") if before.get(key)}

    def plain(self, obj: Object) -> Object:
        """Return a built object with the names of its templates as files write them."""
        namespace = key_of(obj)[2]
        operations: list[Operation] = []
        for path, name in claim_pointers(obj):
            template = self._built_names.get((namespace, name))
            if template is not None:
                operations.append(replace(path, key_of(template)[3]))
        result: Object = patched(copied(obj), operations)
        return result

    def target(self, obj: Object, due: Wanted, stem: Any, *, shared: bool) -> Object:
        """Return what `obj` has to be, its templates named as files write them; new ones wait for `add`.

        `stem` is the metadata of the patch that will name them, `shared` says that it is about several objects.
        """
        named: dict[str, str] = {}
        for template in due.plan.templates:
            named[key_of(template)[3]] = self._name_of(template, obj, stem, shared=shared)
        operations = [replace(path, named[name]) for path, name in claim_pointers(due.after) if name in named]
        return self.plain(patched(copied(due.after), operations))

    def _name_of(self, template: Object, obj: Object, stem: Any, *, shared: bool) -> str:
        """Return the name of a template that is there, or that will be."""
        around = self.metadata(obj)
        if isinstance(stem, dict):
            around |= {key: stem[key] for key in ("name", "namespace") if isinstance(stem.get(key), str)}
        spec = canonical_spec(template["spec"])
        digest = key_of(template)[3].rpartition("-")[2]
        if shared and (known := self._shared.get(digest)):
            return known
        name = f"{around['name']}-gpu-{digest}"
        used = {used for _, used in claim_pointers(obj)}
        for built, plain in ((each, self._plain[key_of(each)]) for each in self._have if is_ours(each)):
            here = key_of(built)[2] == key_of(obj)[2] and key_of(built)[3] in used
            if (here or key_of(plain)[3] == name) and same(canonical_spec(built["spec"]), spec):
                self._shared[digest] = key_of(plain)[3]
                return self._shared[digest]
        self._shared[digest] = name
        self._new.append(self._renamed(template, obj, name, around))
        return name

    def _renamed(self, template: Object, obj: Object, name: str, around: Object) -> Object:
        before = self._plain[key_of(obj)].get("metadata", {})
        metadata = template["metadata"]
        result: Object = {"name": name}
        if around.get("namespace"):
            result["namespace"] = around["namespace"]
        if before.get("labels"):
            result["labels"] = before["labels"]
        kind = metadata["annotations"][WORKLOAD_ANNOTATION].partition("/")[0]
        result["annotations"] = {**metadata["annotations"], WORKLOAD_ANNOTATION: f"{kind}/{around['name']}"}
        return {**template, "metadata": result}

    def shared(self) -> int:
        """Return a mark for `forget`."""
        self._shared = {}
        return len(self._new)

    def forget(self, mark: int) -> None:
        """Forget the new templates since `mark`."""
        del self._new[mark:]
        self._shared = {}

    def add(self, owner: Kustomization) -> None:
        """Give the new templates to a kustomization."""
        for template in self._new:
            self._work.add_template(owner, template)
        self._new = []
        self._shared = {}

    def strays(self, obj: Object) -> list[str]:
        """Return the names of the templates, as files write them, that an object would use but for their namespace."""
        namespace = key_of(obj)[2]
        built = {key_of(each)[2:] for each in self._have if each.get("kind") == KIND}
        missing = [name for _, name in claim_pointers(obj) if (namespace, name) not in built]
        return [
            key_of(self._plain[key_of(each)])[3]
            for each in self._have
            if is_ours(each) and (key_of(each)[3] in missing or key_of(self._plain[key_of(each)])[3] in missing)
        ]


def _aligned(one: Kustomization, work: Work, have: Sequence[Object]) -> dict[Key, Object]:
    """Return each built object as it is before this layer's own prefix, namespace and labels; itself if not known."""
    itself = {key_of(obj): obj for obj in have}
    data = work.data(one)
    if not any(data.get(key) for key in _CHANGING):
        return itself
    try:
        ordered = have
        if data.get("sortOptions"):
            ordered = work.tree.probe(one, json.dumps({key: data[key] for key in data if key != "sortOptions"}))
        plain = work.tree.probe(one, json.dumps({key: value for key, value in data.items() if key not in _CHANGING}))
    except BuildError:
        return itself
    if len(ordered) != len(plain) or {key_of(obj) for obj in ordered} != itself.keys():
        return itself
    return {key_of(built): before for built, before in zip(ordered, plain, strict=True)}
