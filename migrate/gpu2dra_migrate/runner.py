"""A run over many files: find them, convert each (in several processes where that pays), and gather the results."""

from __future__ import annotations

import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from gpu2dra import Context, Finding, Keep, Object, Options
from gpu2dra.codes import finding

from gpu2dra_migrate import manifest
from gpu2dra_migrate.discover import Found, find, git_grep, may_hold_legacy
from gpu2dra_migrate.files import Unreadable, read_text, write_text
from gpu2dra_migrate.kustomize import Roles, lazy_roles
from gpu2dra_migrate.manifest import CONVERSIONS, Located


class Mode(StrEnum):
    """What a run does with what it finds."""

    CHECK = "check"
    DIFF = "diff"
    CONVERT = "convert"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What holds for every file of a run."""

    mode: Mode
    options: Options
    max_size: int
    jobs: int = 0


@dataclass(slots=True)
class FileResult:
    """What became of one file: its findings, and its text before and after where it changes.

    `created` holds the files that stand beside it, with their text.
    """

    path: Path
    findings: list[Located] = field(default_factory=list)
    before: str | None = None
    after: str | None = None
    created: dict[Path, str] = field(default_factory=dict)
    objects: int = 0
    requests: int = 0
    ignored: int = 0

    @property
    def changed(self) -> bool:
        """Whether the file changes, or would."""
        return self.after is not None


Roles_ = Callable[[Path], Roles]
_FILES_PER_PROCESS = 48
"""A second process costs about as long to start as this many manifests take."""


def run(
    paths: Sequence[Path], settings: Settings, selects: Callable[[Path], bool] = lambda _: True, *, select_named: bool = False
) -> Iterator[FileResult]:
    """Yield the result of every candidate below `paths` that `selects` lets in, in order.

    A file that is named in `paths` is in whatever `selects` says, unless `select_named`. With Mode.CONVERT files are
    written as they come. Problems of one file are its findings; the others go on.
    """
    named = set() if select_named else {path for path in paths if not path.is_dir()}
    candidates = [found for found in find(paths) if found.code or found.path in named or selects(found.path)]
    work = [found.path for found in candidates if not found.code]
    context = _neighbours(work, settings) if work else Context()
    if context.renames:
        known = set(work)
        work += [path for path in _users_of(context.renames, paths) if path not in known]
        candidates += [Found(path) for path in work[len(known) :]]
    results = _results(work, settings, context)
    for found in candidates:
        if found.code:
            problem = finding(found.code, "", found.message)
            yield FileResult(found.path, [Located(problem, 0, 0, "")])
        else:
            yield next(results)


def _results(work: list[Path], settings: Settings, context: Context) -> Iterator[FileResult]:
    jobs = min(settings.jobs or os.cpu_count() or 1, len(work) // _FILES_PER_PROCESS)
    worker = _Worker(settings, context)
    if jobs < 2:  # noqa: PLR2004 - one process needs no pool
        return map(worker, work)
    # Threads would be needed for fork to be unsafe, and there are none; spawn costs a second on each start.
    method = "fork" if sys.platform == "linux" else None
    pool = ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context(method))

    def results() -> Iterator[FileResult]:
        with pool:
            yield from pool.map(worker, work, chunksize=max(1, min(32, len(work) // (jobs * 4))))

    return results()


class _Worker:
    """Converts one file after another; what it knows of repositories is asked once per process."""

    def __init__(self, settings: Settings, context: Context) -> None:
        self._settings = settings
        self._context = context
        self._roles: Roles_ | None = None
        self._keep: Callable[[Path], tuple[Keep, ...]] | None = None

    def __getstate__(self) -> dict[str, object]:
        return {"settings": self._settings, "context": (dict(self._context.claim_classes), dict(self._context.priorities), dict(self._context.renames))}

    def __setstate__(self, state: dict[str, object]) -> None:
        self._settings = state["settings"]  # type: ignore[assignment] # pickled by __getstate__
        classes, priorities, renames = state["context"]  # type: ignore[misc] # as above
        self._context = Context(claim_classes=classes, priorities=priorities, renames=renames)
        self._roles = self._keep = None

    def __call__(self, path: Path) -> FileResult:
        """Convert one file. An error of our own is told like one of the file, so that the others are still done."""
        try:
            return self._convert(path)
        except Exception as error:
            if os.environ.get("GPU2DRA_DEBUG"):
                raise
            text = f"Nothing was written: {type(error).__name__}: {error}"
            return FileResult(path, [Located(finding("DRA599", "", text), 0, 0, "")])

    def _convert(self, path: Path) -> FileResult:
        result = FileResult(path)
        try:
            text = read_text(path, self._settings.max_size)
        except Unreadable as error:
            result.findings.append(Located(finding(error.code, "", error.message), 0, 0, ""))
            return result
        if not may_hold_legacy(text.encode()) and not any(old in text for _, old in self._context.renames):
            return result
        conversion = manifest.convert(
            text, self._settings.options, self._context, reason=self._reason(path), keep=self._keeps(path),
            write=self._settings.mode is not Mode.CHECK,
        )  # fmt: skip
        result.findings = conversion.findings
        result.ignored = conversion.ignored
        if conversion.text is None:
            return result
        result.created = _created(path, conversion.beside)
        if problem := _in_the_way(result.created):
            result.findings.append(Located(problem, 0, 0, ""))
            return result
        result.objects, result.requests = conversion.objects, conversion.requests
        if self._settings.mode is Mode.CONVERT:
            return _write(result, conversion.text)
        result.before, result.after = (text, conversion.text) if self._settings.mode is Mode.DIFF else ("", "")
        return result

    def _reason(self, path: Path) -> manifest.Reason:
        """Return what forbids an object of this file: it is a Kustomize patch, or a patch touches it."""
        absolute = Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links

        def reason(kind: str, name: str) -> Finding | None:
            if self._roles is None:
                self._roles = lazy_roles()
            roles = self._roles(absolute.parent)
            if source := roles.patches.get(absolute):
                text = f"This is a patch of {_relative(source, path)}; convert what kustomize builds, or move the request to the base."
                return finding("DRA409", "", text)
            if source := roles.patched_by(absolute, kind, name):
                text = f"{_relative(source, path)} patches the GPU request of this {kind}; convert both together."
                return finding("DRA410", "", text)
            return None

        return reason

    def _keeps(self, path: Path) -> Callable[[], tuple[Keep, ...]]:
        def keeps() -> tuple[Keep, ...]:
            if self._settings.mode is Mode.CHECK:
                return ()  # only annotations of templates depend on it
            if self._keep is None:
                self._keep = _lazy_keep()
            return self._keep(Path(os.path.abspath(path)).parent)  # noqa: PTH100 - as above

        return keeps


def _created(path: Path, templates: list[Object]) -> dict[Path, str]:
    """Return the file for templates that cannot stand in `path`; sorted before it, so that `apply -f DIR` makes it first."""
    if not templates:
        return {}
    if path.suffix == ".json":
        body: Object = templates[0] if len(templates) == 1 else {"apiVersion": "v1", "kind": "List", "items": templates}
        return {path.with_name(f"{path.stem}-gpu-template.json"): json.dumps(body, indent=2, ensure_ascii=False) + "\n"}
    from gpu2dra_migrate.emit import documents_text  # noqa: PLC0415 - rare

    return {path.with_name(f"{path.stem}-gpu-template.yaml"): documents_text(templates)}


def _in_the_way(created: Mapping[Path, str]) -> Finding | None:
    for path, text in created.items():
        if path.exists() and path.read_text(encoding="utf-8", errors="replace") != text:
            return finding("DRA511", "", f"The template would go into {path.name}, which is there already; move it first.")
    return None


def _write(result: FileResult, text: str) -> FileResult:
    """Write the new files first: a template without a user does no harm, a user without its template waits for ever."""
    written: list[Path] = []
    try:
        for path, content in result.created.items():
            existed = path.exists()
            write_text(path, content)
            if not existed:
                written.append(path)
        write_text(result.path, text)
    except OSError as error:
        for path in written:
            path.unlink(missing_ok=True)
        problem = finding("DRA510", "", f"Could not be written: {error.strerror or error}; the file is as it was.")
        kept = [item for item in result.findings if item.finding.code not in CONVERSIONS]
        return FileResult(result.path, [*kept, Located(problem, 0, 0, "")], ignored=result.ignored)
    result.after = ""
    return result


def _relative(path: Path, start: Path) -> str:
    return os.path.relpath(path, Path(os.path.abspath(start)).parent)  # noqa: PTH100, RUF100 - walk_up came with 3.12


def _neighbours(work: list[Path], settings: Settings) -> Context:
    """Return what files with templates of ours say about the others: names that no longer fit (R8)."""
    context = Context()
    for path in work:
        try:
            text = read_text(path, settings.max_size)
        except Unreadable:
            continue
        if "gpu2dra.dev/workload" in text:
            context = manifest.with_neighbours(context, manifest.objects(text))
    return Context(renames=context.renames)


def _users_of(renames: Mapping[tuple[str, str], str], paths: Sequence[Path]) -> list[Path]:
    """Return the files below the folders among `paths` that name a template which gets another name."""
    names = sorted({old for _, old in renames})
    return [folder / name for folder in paths if folder.is_dir() for name in git_grep(folder, names) or ()]


def _lazy_keep() -> Callable[[Path], tuple[Keep, ...]]:
    """Return a function that tells which tools prune what a repository no longer holds, asking each repository once."""
    signs = {Keep.ARGOCD: ("argocd.argoproj.io/", "namespace: argocd"), Keep.FLUX: ("kustomize.toolkit.fluxcd.io/",)}
    known: dict[Path, tuple[Keep, ...]] = {}

    def keep(folder: Path) -> tuple[Keep, ...]:
        top = next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)
        if top is None:
            return ()
        if top not in known:
            known[top] = tuple(tool for tool, terms in signs.items() if git_grep(top, terms))
        return known[top]

    return keep
