"""Which files may hold a legacy request: git's answer where there is a repository, a walk elsewhere."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpu2dra_migrate.search import git, packed
from gpu2dra_migrate.search.walk import Problem, holds, leads_out, walk

if TYPE_CHECKING:
    from pathlib import Path

SEARCH_TERMS = (
    "nvidia.com/",
    "nvidia.com~1",
    "nvidia.com\\/",  # JSON as PHP writes it
    "nvidia.com\\u002f",  # and as some libraries do that escape what is special in HTML
    "nvidia.com\\u002F",
    "nvidia_com_",
    "volcano.sh/vgpu-",
    "volcano.sh/gpu-",
    "gpu2dra.dev/",
)
"""A file without any of these cannot hold a legacy name or a template of ours and is never parsed."""
_ENDINGS = (".yaml", ".yml", ".json")
_TEMPLATE_ENDINGS = (".tmpl", ".template", ".tpl", ".j2", ".jinja", ".jinja2", ".in", ".gotmpl", ".envsubst")
"""Behind one of `_ENDINGS` these make a template of a manifest, such as `pod.yaml.tmpl`."""
_CHART_ENDING, _CHART_FOLDER = ".tpl", "templates"
_NOT_FOLLOWED = "A link that leads out of the tree is not followed; name its target on the command line."
_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


@dataclass(frozen=True, slots=True)
class Found:
    """A file to look at, or (with `code`) a place that could not be looked at and why."""

    path: Path
    code: str = ""
    message: str = ""


def may_hold_legacy(text: str) -> bool:
    """Whether `text` holds any of the search terms."""
    return any(term in text for term in SEARCH_TERMS)


def is_manifest_name(name: str) -> bool:
    """Whether a file of this name is read when its folder is searched."""
    lower = name.lower()
    for ending in _TEMPLATE_ENDINGS:
        lower = lower.removesuffix(ending)
    return lower.endswith(_ENDINGS)


def is_chart_helper(path: Path) -> bool:
    """Whether `path` may hold definitions of a Helm chart, which is all that is of interest in it."""
    return path.suffix == _CHART_ENDING and not is_manifest_name(path.name) and _CHART_FOLDER in path.parts


def is_for_groups(path: Path) -> bool:
    """Whether a file is of interest only as a part of something: definitions of a chart, a packed chart."""
    return is_chart_helper(path) or path.suffix == packed.ENDING


class _Asked(threading.Thread):
    """A question to git that is on its way."""

    def __init__(self, folder: Path) -> None:
        super().__init__(name="git")
        self._folder = folder
        self._answer: git.Answer | None = None
        self._error: Exception | None = None

    def run(self) -> None:
        """Ask."""
        try:
            self._answer = _ask(self._folder, SEARCH_TERMS, helpers=True)
        except Exception as error:  # noqa: BLE001 - raised where the answer is asked for
            self._error = error

    def answer(self) -> git.Answer | None:
        """Return what git said, once it has said it."""
        self.join()
        if self._error:
            raise self._error
        return self._answer


_asked: dict[str, _Asked] = {}
"""By the absolute path of the folder."""


def ask_ahead(paths: Iterable[Path]) -> None:
    """Have git begin to search the folders among `paths`, for a `find` that follows: to load modules takes as long."""
    _asked.clear()
    for path in paths:
        key = os.path.abspath(path)  # noqa: PTH100 - links stay links
        if path.is_dir() and key not in _asked:
            _asked[key] = asked = _Asked(path)
            asked.start()


def _ask(folder: Path, terms: Sequence[str], *, helpers: bool) -> git.Answer | None:
    """Return git's answer; None for a folder that it ignores as a whole, or knows nothing of."""
    is_top = (folder / ".git").exists()
    wanted = git.MANIFESTS + git.CHART_HELPERS * helpers
    return None if not is_top and git.is_ignored(folder) else git.grep_beside(folder, terms, *wanted)


def find(paths: Iterable[Path]) -> Iterator[Found]:
    """Yield the candidates below `paths`, each once, sorted within each path.

    A file that is named is always a candidate; a folder is searched for the search terms, definitions of charts
    (`is_chart_helper`) and packed charts included.
    """
    seen: set[str] = set()
    for path in paths:
        for found in _find_one(path):
            key = os.path.realpath(found.path)
            if key not in seen:
                seen.add(key)
                yield found


def _find_one(path: Path) -> Iterator[Found]:
    try:
        mode = path.stat().st_mode
    except OSError as error:
        what = "The target of this link" if path.is_symlink() else "This path"
        yield Found(path, "DRA510", f"{what} cannot be read ({error.strerror}); check it.")
        return
    if stat.S_ISDIR(mode):
        yield from search(path, SEARCH_TERMS, helpers=True)
    elif stat.S_ISREG(mode):
        yield Found(path)
    else:
        what = next((words for is_kind, words in _KINDS if is_kind(mode)), "something else")
        yield Found(path, "DRA510", f"This is {what}, no file; use - to read a manifest from standard input.")


def search(folder: Path, terms: Sequence[str], *, helpers: bool = False) -> Iterator[Found]:
    """Yield the manifests (and `helpers` of charts, and packed ones) below `folder` that hold a term.

    What could not be looked at is yielded as well.

    In a git repository that is what git does not ignore; a folder that is ignored as a whole, but was named, is walked.
    Submodules and other repositories inside are searched as well: each with its own rules of what is ignored.
    """
    asked = _asked.pop(os.path.abspath(folder), None) if helpers and terms is SEARCH_TERMS else None  # noqa: PTH100
    answer = asked.answer() if asked else _ask(folder, terms, helpers=helpers)
    if answer is None:
        yield from _search_by_walk(folder, terms, helpers=helpers)
        return
    (names, complaints), beside = answer
    yield from (Found(name) for name in names if is_manifest_name(name.name) or (helpers and is_chart_helper(name)))
    yield from (Found(item.path, "DRA510", _unreadable(item.problem)) for item in complaints)
    if helpers:
        yield from _packed(beside.archives, terms)
    for link in beside.links:
        if (is_manifest_name(link.name) or link.is_dir()) and leads_out(link, folder):
            yield Found(link, "DRA504", _NOT_FOLLOWED)
    for repository in beside.repositories:
        if repository.is_dir():
            yield from search(repository, terms, helpers=helpers)


def _search_by_walk(root: Path, terms: Sequence[str], *, helpers: bool) -> Iterator[Found]:
    wanted = tuple(term.encode() for term in terms)
    more = (_CHART_ENDING, packed.ENDING) if helpers else ()
    for path in walk(root, lambda name: is_manifest_name(name) or name.endswith(more)):
        if isinstance(path, Problem):
            yield Found(path.path, "DRA510", _unreadable(path.reason))
        elif path.is_symlink():
            if leads_out(path, root):
                yield Found(path, "DRA504", _NOT_FOLLOWED)
        elif path.suffix == packed.ENDING:
            yield from _packed([path], terms)
        else:
            try:
                if (is_manifest_name(path.name) or is_chart_helper(path)) and holds(path, wanted):
                    yield Found(path)
            except Problem as problem:
                yield Found(path, "DRA510", _unreadable(problem.reason))


def _packed(archives: Iterable[Path], terms: Sequence[str]) -> Iterator[Found]:
    wanted = tuple(term.encode() for term in terms)
    for path in archives:
        try:
            if packed.holds(path, wanted):
                yield Found(path)
        except OSError as error:
            yield Found(path, "DRA510", _unreadable(error.strerror or str(error)))


def _unreadable(reason: str) -> str:
    return f"Could not be read ({reason}); check its permissions."
