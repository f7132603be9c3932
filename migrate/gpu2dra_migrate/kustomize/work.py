"""What a conversion adds to kustomizations: files, their lines in lists, and the rule by which names are followed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from gpu2dra.model import Object, Operation
from gpu2dra_migrate.errors import LAYOUT, CannotEdit
from gpu2dra_migrate.kustomize.files import Kustomization, first_map
from gpu2dra_migrate.kustomize.flux import AppliedKustomization
from gpu2dra_migrate.kustomize.graph import Graph
from gpu2dra_migrate.kustomize.references import CONFIGURATION, FieldSpec, configuration, field_specs, specs_in
from gpu2dra_migrate.kustomize.texts import listed, with_operations
from gpu2dra_migrate.kustomize.tree import Tree
from gpu2dra_migrate.text.emit import documents_text

TEMPLATES = "resourceclaimtemplates.yaml"


class Work:
    """One attempt at the kustomizations of `tree`. Its methods raise FileError where a file cannot be edited."""

    def __init__(self, graph: Graph, tree: Tree) -> None:
        self.graph = graph
        self.tree = tree
        self._templates: dict[Path, list[Object]] = {}
        self._renamed = {
            inner.folder
            for one in graph.all
            if one.renames or any(each.renames for each in graph.components(one))
            for inner in graph.closure(one)[0]
        }

    def data(self, one: Kustomization) -> Object:
        """Return what a kustomization says as it becomes."""
        return one.data_of(self.tree.text(one.file))

    def edit(self, one: Kustomization, operations: Sequence[Operation]) -> None:
        """Edit a kustomization."""
        if operations:
            self.tree.write(one.file, with_operations(self.tree.text(one.file), operations), one)

    def add_resource(self, one: Kustomization, path: Path, text: str) -> None:
        """Make a file and name it among the resources of `one`."""
        self._write(path, text, one)
        name = Path(os.path.relpath(path, one.folder)).as_posix()
        self.edit(one, listed(self.data(one), "resources", name))

    def add_template(self, one: Kustomization, template: Object) -> None:
        """Put a template into the file for templates of a kustomization.

        What Flux makes lists no files, so there it goes to what it is made of; a folder without a kustomization is
        listed by Flux as it is.
        """
        home = self._home(one)
        folder = home.folder if home else one.listed or one.folder
        templates = self._templates.setdefault(folder, [])
        if template in templates:
            return
        templates.append(template)
        path, text = self._free(folder, TEMPLATES), documents_text(templates)
        if home:
            self.add_resource(home, path, text)
        else:
            self._write(path, text, one)

    def add_patch(self, one: Kustomization, name: str, entry: Object, text: str) -> None:
        """Make the file of a patch and name it, with what `entry` says, among the patches of a kustomization."""
        if self._home(one) is not one:
            raise CannotEdit(LAYOUT, "a Kustomization of Flux would need another patch", 1, 1)
        path = self._free(one.folder, name)
        self._write(path, text, one)
        self.edit(one, listed(self.data(one), "patches", {"path": path.name, **entry}))

    def add_references(self, one: Kustomization, objects: Iterable[Any]) -> None:
        """Let kustomize follow the names of templates that the objects use, where something above renames them."""
        specs = set(field_specs(objects))
        home = self._home(one)
        if not specs or (home or one).folder not in self._renamed:
            return
        if home is None:
            raise CannotEdit(
                LAYOUT,
                f"{(one.listed or one.folder).name} needs a kustomization, which lets names of templates follow",
                1,
                1,
            )
        one = home
        path = one.folder / CONFIGURATION
        below = {spec for inner in self.graph.closure(one)[0] for spec in self._known(inner)}
        if specs <= below:
            return
        known = set(self._known(one))
        self._write(path, documents_text([configuration(specs | known)]), one)
        self.edit(one, listed(self.data(one), "configurations", path.name))

    def _write(self, path: Path, text: str, one: Kustomization) -> None:
        """Write a file of our own with the line ends of the kustomization that lists it."""
        lines = text.replace("\r\n", "\n")
        self.tree.write(path, lines.replace("\n", "\r\n") if "\r\n" in one.text else lines, one)

    def _home(self, one: Kustomization) -> Kustomization | None:
        """Return the kustomization that lists files for `one`; None where Flux lists what a folder holds."""
        if not isinstance(one, AppliedKustomization):
            return one
        return self.graph.at(one.base)

    def _known(self, one: Kustomization) -> list[FieldSpec]:
        """Return the fields that kustomize follows already by what stands in the folder of `one`."""
        return list(specs_in(first_map(self.tree.text(one.folder / CONFIGURATION))))

    @staticmethod
    def _free(folder: Path, name: str) -> Path:
        """Return the path for a new file: its name, with a number where something else has it."""
        path, number = folder / name, 2
        while path.exists():
            stem, dot, ending = name.rpartition(".")
            path, number = folder / f"{stem}-{number}{dot}{ending}", number + 1
        return path
