"""One kustomization on its way: what it builds is compared with what is due, and its patches are made to fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from gpu2dra.model import Object
from gpu2dra.resources import legacy_resource
from gpu2dra_migrate.errors import FileError
from gpu2dra_migrate.kustomize.carrier import Carrier
from gpu2dra_migrate.kustomize.changes import WHOLE, Change, as_operations, changes, merged
from gpu2dra_migrate.kustomize.files import Kustomization
from gpu2dra_migrate.kustomize.names import Names
from gpu2dra_migrate.kustomize.patches import patches_of
from gpu2dra_migrate.kustomize.problem import Problem
from gpu2dra_migrate.kustomize.program import BuildError
from gpu2dra_migrate.kustomize.references import namespace_targets
from gpu2dra_migrate.kustomize.requests import is_zero
from gpu2dra_migrate.kustomize.square import Key, State, Wanted, is_ours, key_of, states
from gpu2dra_migrate.kustomize.work import Work
from gpu2dra_migrate.manifest import describe
from gpu2dra_migrate.text.emit import documents_text

_ROUNDS = 8
"""Each round adds what the one before has shown to be missing: claims, then a namespace of their templates."""
_PATIENCE = 3
"""Rounds after which a patch of our own, behind all others, says what another one overrides."""
_STRATEGIC = ("", "apps", "batch")
"""Groups whose objects kustomize merges by the names of their containers."""


class _Cannot(Exception):
    """There is no change known that would make the kustomization build what is due."""


class Layer:
    """`one` with what it is due to build; `carriers` are the patches of the whole graph that convert."""

    def __init__(self, one: Kustomization, work: Work, due: dict[Key, Wanted], carriers: Sequence[Carrier]) -> None:
        self._one = one
        self._work = work
        self._due = due
        nodes = [*work.graph.components(one), one]
        keys = {patch.key for node in nodes for patch in patches_of(node)}
        self._carriers = [carrier for carrier in carriers if carrier.patch.key in keys]
        self._nodes = nodes
        self._own: dict[str, Any] = {}

    def settle(self) -> Problem | None:
        """Change patches and lists until the square commutes; return why that is not possible."""
        wrong: list[Key] = []
        try:
            for number in range(_ROUNDS):
                have = self._work.tree.after(self._one)
                found = states(have, self._due)
                wrong = [key for key, state in found.items() if state is State.WRONG]
                if not wrong and not self._fill(have, found):
                    return None
                if wrong:
                    self._fix(have, wrong, alone=number > _PATIENCE)
        except BuildError as error:
            return Problem("DRA437", f"Would not build any more: {error}")
        except (_Cannot, FileError) as error:
            return Problem("DRA437", str(error)[:1].upper() + str(error)[1:])
        return Problem("DRA437", f"{_named(wrong)} would not be what converting the build gives")

    def proven(self) -> bool:
        """Whether there is something to prove in a kustomization that is settled, and all of it is."""
        have = self._work.tree.after(self._one)
        asking = {key for key, each in self._due.items() if each.plan}
        left = {key for key, state in states(have, self._due).items() if state is State.LEFT}
        return not left and (bool(asking) or any(map(is_ours, have)))

    def _fill(self, have: list[Any], found: dict[Key, State]) -> bool:
        """Let what a patch has no more to say about be said by the claims that are there; return whether it was.

        A patch that sets the amount of its base again has nothing to say otherwise, and kustomize takes no empty one.
        """
        filled = False
        names: Names | None = None
        for obj in have:
            key = key_of(obj)
            if found.get(key) is not State.RIGHT or key not in self._due:
                continue
            for carrier in self._carriers:
                for number in carrier.about(obj):
                    silent, bare = carrier.silent(number), carrier.bare(number)
                    if not silent and not bare:
                        continue
                    names = names or Names(self._one, self._work, have)
                    plain = names.plain(obj)
                    wanted = [each for each in changes(_without_claims(plain), plain) if silent or _is_in(each, bare)]
                    if wanted and (document := carrier.saying(number, plain, wanted)) is not None:
                        carrier.say(number, document, self._work)
                        filled = True
                    elif silent and carrier.operations:
                        raise _Cannot(f"the patch of {describe(obj)} would say nothing any more; remove it")
        return filled

    def _fix(self, have: list[Any], wrong: list[Key], *, alone: bool) -> None:
        """Add what is missing for the objects `wrong`, with `alone` in patches of our own; raise _Cannot."""
        built = {key_of(obj): obj for obj in have}
        names = Names(self._one, self._work, have)
        asked: dict[tuple[int, int], list[tuple[Object, Object]]] = {}
        rest: list[tuple[Object, Object]] = []
        for key in wrong:
            obj, due = built.get(key), self._due.get(key)
            if obj is None or due is None:
                raise _Cannot(f"{_named([key])} would {'come' if due is None else 'go'}")
            places = [(n, number) for n, carrier in enumerate(self._carriers) for number in carrier.about(obj)]
            if places and not alone:
                asked.setdefault(places[-1], []).append((obj, due.before))
            else:
                rest.append((obj, due.before))
        for (position, number), pairs in asked.items():
            if not self._by_carrier(self._carriers[position], number, pairs, names):
                rest += pairs
        for obj, _ in rest:
            self._by_new_patch(obj, names)

    def _by_carrier(self, carrier: Carrier, number: int, pairs: list[tuple[Object, Object]], names: Names) -> bool:
        """Let a patch say what its objects lack; return False where they would have to be told apart."""
        owner = carrier.patch.owner
        stem = None
        if not carrier.operations and not carrier.patch.target:
            stem = carrier.documents[number].get("metadata")
        documents: list[Any] = []
        first = names.shared()
        for obj, _ in pairs:
            have, wanted = self._missing(obj, names, owner, stem, shared=len(pairs) > 1)
            document = carrier.saying(number, have, wanted)
            if document is None:
                raise _Cannot(f"the patch of {describe(obj)} cannot say what it has to")
            documents.append(document)
        if any(document != documents[0] for document in documents):
            names.forget(first)
            return False
        names.add(owner)
        carrier.say(number, documents[0], self._work)
        carrier.objects = max(carrier.objects, len(pairs))
        return True

    def _by_new_patch(self, obj: Object, names: Names) -> None:
        """Add a patch of our own for an object that none of the patches with a request is about."""
        have, wanted = self._missing(obj, names, self._one, None)
        names.add(self._one)
        plain = names.metadata(obj)
        name = f"{plain['name']}-gpu-patch.yaml"
        api_version, kind = str(obj.get("apiVersion")), str(obj.get("kind"))
        group, _, version = api_version.rpartition("/")
        if group in _STRATEGIC and all(change.named for change in wanted):
            head = self._own.get(name, {"apiVersion": api_version, "kind": kind, "metadata": plain})
            self._own[name] = merged(head, wanted)
            self._work.add_patch(self._one, name, {}, documents_text([self._own[name]]))
            return
        target = {**({"group": group} if group else {}), "version": version, "kind": kind, "name": plain["name"]}
        self._own[name] = [*self._own.get(name, ()), *as_operations(have, wanted)]
        self._work.add_patch(self._one, name, {"target": target}, documents_text([self._own[name]]))

    def _missing(
        self, obj: Object, names: Names, owner: Kustomization, stem: Any, *, shared: bool = False
    ) -> tuple[Object, list[Change]]:
        """Return an object as patches see it, and what has to change in it."""
        due = self._due[key_of(obj)]
        have, target = names.plain(obj), names.target(obj, due, stem, shared=shared)
        wanted = list(changes(have, target))
        refusal = due.refusal
        if refusal or any(_asks(change) for change in wanted):
            raise _Cannot(f"{describe(obj)} keeps its request here: {refusal or 'it is not converted'}")
        if not wanted:
            self._replace_namespace(obj, names)
        self._work.add_references(owner, [target])
        return have, wanted

    def _replace_namespace(self, obj: Object, names: Names) -> None:
        """Let what sets the namespace of an object set that of its templates; raise _Cannot where nothing does."""
        strays = names.strays(obj)
        found = False
        for node in self._nodes:
            operations = namespace_targets(self._work.data(node).get("replacements"), obj, strays)
            self._work.edit(node, operations)
            found = found or bool(operations)
        if not strays or not found:
            raise _Cannot(f"{describe(obj)} would not find its template")


def _is_in(change: Change, names: set[str]) -> bool:
    return any(not isinstance(step, str) and step[1] in names for step in change.way)


def _asks(change: Change) -> bool:
    """Whether a change would put a legacy request back."""
    last = change.way[-1]
    return not change.gone and any(
        legacy_resource(key) and not is_zero(amount) for key, amount in _pairs(last, change.value)
    )


def _pairs(key: Any, value: Any) -> Iterator[tuple[Any, Any]]:
    yield key, value
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in WHOLE:
                yield from _pairs(name, inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _pairs("", inner)


def _without_claims(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_claims(inner) for key, inner in value.items() if key not in ("resourceClaims", "claims")}
    return [_without_claims(item) for item in value] if isinstance(value, list) else value


def _named(keys: Sequence[Key]) -> str:
    return ", ".join(f"{kind}/{name}" for _, kind, _, name in keys[:3]) + ", …" * (len(keys) > 3)  # noqa: PLR2004 - enough for people
