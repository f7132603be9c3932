"""Patches that set, change or remove a request: taken off the request first, and then made to say what is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpu2dra.model import Object, Operation
from gpu2dra_migrate.errors import FileError
from gpu2dra_migrate.ignores import ignores, is_ignored
from gpu2dra_migrate.kustomize.changes import Change, as_operations, merged
from gpu2dra_migrate.kustomize.files import Kustomization
from gpu2dra_migrate.kustomize.patches import Patch, aims_at, patches_of
from gpu2dra_migrate.kustomize.requests import (
    bare_items,
    is_json6902,
    request_pointers,
    says_something,
    without_requests,
)
from gpu2dra_migrate.kustomize.square import Wanted
from gpu2dra_migrate.kustomize.texts import place_in, with_documents, with_inline_patch
from gpu2dra_migrate.kustomize.work import Work

if TYPE_CHECKING:
    from pathlib import Path

REQUEST = "DRA435"
_NOTHING: Operation = {"op": "copy", "path": "/kind", "from": "/kind"}  # type: ignore[typeddict-item, typeddict-unknown-key] # kustomize knows it
"""An operation that changes nothing: kustomize takes no empty list."""


@dataclass(slots=True)
class Carrier:
    """A patch that is converted. `requests` holds number of the document, JSON Pointer and name of each request.

    `renamed` holds the documents whose objects nobody builds by the name that they give.
    """

    patch: Patch
    documents: list[Any]
    requests: list[tuple[int, str, str]]
    changed: set[int] = field(default_factory=set)
    objects: int = 0
    renamed: set[int] = field(default_factory=set)

    @property
    def operations(self) -> bool:
        """Whether it is a list of JSON Patch operations, not a partial object."""
        return is_json6902(self.documents)

    def silent(self, number: int) -> bool:
        """Whether a document says nothing, now that its requests are gone."""
        document = self.documents[number]
        return document == [_NOTHING] if self.operations else not says_something(document)

    def bare(self, number: int) -> set[str]:
        """Return the names of the containers of which nothing is left to say in a document but their names."""
        return set() if self.operations else set(bare_items(self.documents[number]))

    def about(self, obj: Object) -> list[int]:
        """Return the documents with a request that may be about a built object."""
        numbers = dict.fromkeys(number for number, _, _ in self.requests)
        return [
            number for number in numbers
            if aims_at(self.patch, self.documents[number], obj, renamed=number in self.renamed)
        ]  # fmt: skip

    def saying(self, number: int, have: Object, wanted: list[Change]) -> Any | None:
        """Return the document with `wanted`, changes of `have`, said as well; None where it cannot say that."""
        document = self.documents[number]
        if not self.operations:
            return merged(document, wanted)
        return [*(each for each in document if each != _NOTHING), *as_operations(have, wanted)]

    def say(self, number: int, document: Any, work: Work) -> None:
        """Make a document say something else; raise FileError where its text cannot be edited."""
        self.documents[number] = document
        self.changed.add(number)
        text = with_documents(self.patch.text, {each: self.documents[each] for each in self.changed})
        if self.patch.file is None:
            owner = self.patch.owner
            text = with_inline_patch(work.tree.text(owner.file), self.patch.pointer, text, owner.number)
        work.tree.write(self.patch.place, text, self.patch.owner)


class Ignored(FileError):
    """A comment says that the request of a patch is to stay."""


def strip(
    node: Kustomization, work: Work, may_change: Callable[[Path], bool], due: list[Wanted], *, zeros: bool
) -> Iterator[Carrier | tuple[Patch, str]]:
    """Yield the patches of `node` with a request that converts; it is gone from them then.

    A patch on a request that all objects keep, for a reason of their own, keeps it as well, and comes with the reason.
    With `zeros` operations that set an amount to 0 are taken for requests, as in patches that are merged.
    Raises FileError, Ignored for a request that is to stay.
    """
    for patch in patches_of(node):
        documents = patch.documents()
        text = work.tree.text(patch.place)
        lines = ignores(text)
        found = request_pointers(documents, zeros=zeros or not is_json6902(documents))
        requests = []
        renamed = set()
        for number, where, name in found if may_change(patch.place) else ():
            if is_ignored(REQUEST, place_in(text, patch.pointer, patch.text, number, where, node.number)[0], lines):
                raise Ignored(f"a request of the patch in {patch.place.name} is ignored by a comment")
            about = [each for each in due if aims_at(patch, documents[number], each.before)]
            if not about:
                about = [each for each in due if aims_at(patch, documents[number], each.before, renamed=True)]
                renamed.add(number)
            if about and not all(each.refusal for each in about):
                requests.append((number, where, name))
            elif about:
                yield patch, about[0].refusal
        if not requests:
            continue
        carrier = Carrier(patch, list(documents), requests, renamed=renamed)
        for number in dict.fromkeys(number for number, _, _ in requests):
            left = without_requests(documents[number], [where for each, where, _ in requests if each == number])
            carrier.say(number, left or [_NOTHING] if carrier.operations else left, work)
        yield carrier
