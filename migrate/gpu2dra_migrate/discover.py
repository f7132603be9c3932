"""Which files may hold a legacy request: git's answer where there is a repository, a walk elsewhere."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

SEARCH_TERMS = ("nvidia.com/", "nvidia.com~1", "nvidia_com_", "volcano.sh/vgpu-", "volcano.sh/gpu-", "gpu2dra.dev/")
"""A file without any of these bytes cannot hold a legacy name or a template of ours and is never parsed."""
_TERM_BYTES = tuple(term.encode() for term in SEARCH_TERMS)
_ENDINGS = (".yaml", ".yml", ".json")
_TEMPLATE_ENDINGS = (".tmpl", ".template", ".tpl", ".j2", ".jinja", ".jinja2", ".in", ".gotmpl", ".envsubst")
"""Behind one of `_ENDINGS` these make a template of a manifest, such as `pod.yaml.tmpl`."""
_SKIPPED_FOLDERS = frozenset({".git", ".hg", ".svn", "node_modules", ".venv", "venv", "__pycache__", ".tox", ".terraform"})
_GIT_FAILED = 2


@dataclass(frozen=True, slots=True)
class Found:
    """A file to look at, or (with `code`) a place that could not be looked at and why."""

    path: Path
    code: str = ""
    message: str = ""


def may_hold_legacy(data: bytes) -> bool:
    """Whether `data` holds any of the search terms."""
    return any(term in data for term in _TERM_BYTES)


def is_manifest_name(name: str) -> bool:
    """Whether a file of this name is read when its folder is searched."""
    lower = name.lower()
    for ending in _TEMPLATE_ENDINGS:
        lower = lower.removesuffix(ending)
    return lower.endswith(_ENDINGS)


def find(paths: Iterable[Path]) -> Iterator[Found]:
    """Yield the candidates below `paths`, each once, sorted within each path.

    A file that is named is always a candidate; a folder is searched by `git grep`, or by a walk where git has no
    repository or refuses it.
    """
    seen: set[Path] = set()
    for path in paths:
        for found in _find_one(path):
            key = Path(os.path.abspath(found.path))  # noqa: PTH100 - resolve() would follow links
            if key not in seen:
                seen.add(key)
                yield found


def _find_one(path: Path) -> Iterator[Found]:
    try:
        is_folder = path.is_dir()
        exists = is_folder or path.exists()
    except OSError as error:
        yield Found(path, "DRA510", f"{error.strerror}; check the path.")
        return
    if not exists:
        yield Found(path, "DRA510", "No such file or folder; check the path.")
    elif not is_folder:
        yield Found(path)
    else:
        names = git_grep(path, SEARCH_TERMS)
        yield from _walk(path) if names is None else (Found(path / name) for name in names)


def git_grep(folder: Path, terms: Iterable[str]) -> list[str] | None:
    """Return the manifests below `folder` that hold one of `terms`, tracked or not but never ignored; None: no git.

    Names are relative to `folder`, sorted.
    """
    command = ["git", "-C", str(folder), "grep", "-zIlF", "--untracked"]
    for term in terms:
        command += ["-e", term]
    globs = [f"*{ending}{more}" for ending in _ENDINGS for more in ("", *_TEMPLATE_ENDINGS)]
    output = run_git([*command, "--", *(f":(icase){glob}" for glob in globs)])
    if output is None:
        return None
    return sorted(os.fsdecode(name) for name in output.split(b"\0") if name)


def git_files(folder: Path, *globs: str) -> list[Path] | None:
    """Return the files of the repository around `folder` that match `globs`, tracked or not; None: no git."""
    top = run_git(["git", "-C", str(folder), "rev-parse", "--show-toplevel"])
    if top is None:
        return None
    root = Path(os.fsdecode(top.rstrip(b"\n")))
    output = run_git(
        ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *globs]
    )
    return None if output is None else [root / os.fsdecode(name) for name in output.split(b"\0") if name]


def run_git(command: list[str]) -> bytes | None:
    """Return what git prints, where "nothing found" is nothing; None when there is no git or it refuses."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)  # noqa: S603 - fixed words and paths
    except OSError:
        return None
    return done.stdout if done.returncode < _GIT_FAILED else None


def _walk(root: Path) -> Iterator[Found]:
    """Search `root` without git: links are followed only when their target stays inside, and then it is met there."""
    problems: list[OSError] = []
    inside = root.resolve()
    for folder, folders, names in os.walk(root, onerror=problems.append):
        folders[:] = sorted(name for name in folders if name not in _SKIPPED_FOLDERS)
        for name in sorted(names):
            path = Path(folder, name)
            if not is_manifest_name(name):
                continue
            if path.is_symlink():
                if path.exists() and not path.resolve().is_relative_to(inside):
                    yield Found(path, "DRA504", "A link that leads out of the tree is not followed; name the file itself.")
                continue
            try:
                data = path.read_bytes() if path.is_file() else b""
            except OSError as error:
                yield Found(path, "DRA510", f"{error.strerror}; check its permissions.")
                continue
            if may_hold_legacy(data) and b"\0" not in data:
                yield Found(path)
    for problem in problems:
        yield Found(Path(problem.filename), "DRA510", f"{problem.strerror}; check its permissions.")
