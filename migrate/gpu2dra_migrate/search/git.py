"""What git knows about a folder: which files hold a text, and what its search does not enter."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from gpu2dra_migrate.search.packed import ENDING

if TYPE_CHECKING:
    from pathlib import Path

# Settings of the user's that would change the answers: coloured names, names from the top, submodules entered.
_PLAIN = (
    "-c",
    "color.ui=false",
    "-c",
    "grep.fullName=false",
    "-c",
    "submodule.recurse=false",
    "-c",
    "core.quotePath=true",
)
MANIFESTS = ("*.[yY]*[mM][lL]*", "*.[jJ][sS][oO][nN]*")
"""Pathspecs for whatever discover.is_manifest_name takes, and a little more. Written out, because git (2.39) finds
nothing two levels below the top of a repository by `grep --untracked` with `:(icase)`."""
CHART_HELPERS = ("*templates/*.tpl",)
"""Pathspec for whatever discover.is_chart_helper takes, and a little more."""
_FOUND_OR_NOT = (0, 1)
_GIT_THREADS = 8
"""What git takes of its own accord; on two cores half of them search a quarter faster."""
_BLOB = re.compile(rb"100\d{3} [0-9a-f]+ \d\t")
_ARCHIVE = ENDING.encode()
_LINK, _REPOSITORY = b"120000 ", b"160000 "
_COMPLAINT = re.compile(r"(?:error|warning|fatal): .*?'(?P<name>.+)': (?P<problem>.+)")


@dataclass(frozen=True, slots=True)
class Complaint:
    """A place that git could not look at."""

    path: Path
    problem: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What stands in a folder that `grep` passes over: repositories inside it, symbolic links, and archives."""

    repositories: tuple[Path, ...]
    links: tuple[Path, ...]
    archives: tuple[Path, ...] = ()


Answer: TypeAlias = tuple[tuple[list["Path"], list[Complaint]], Listing]
"""What was found and what could not be looked at, and what the search does not enter."""


def run(folder: Path, *arguments: str) -> tuple[int, bytes, str] | None:
    """Run git in `folder`; return its exit code, output and messages, or None where there is no git."""
    import subprocess  # noqa: PLC0415 - one file without a request needs no git

    # A hook of git runs with GIT_DIR and GIT_INDEX_FILE set for its own repository; each folder here has its own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0"}
    try:
        done = subprocess.run(  # noqa: S603 - no shell; paths follow -C or --
            ["git", "-C", os.fspath(folder), *_PLAIN, *arguments],  # noqa: S607 - the user's git
            stdin=subprocess.DEVNULL, capture_output=True, check=False, env=environment,
        )  # fmt: skip
    except OSError:
        return None
    return done.returncode, done.stdout, os.fsdecode(done.stderr)


def top_of(folder: Path) -> Path | None:
    """Return the top of the work tree that `folder` is in, without running git; None outside one."""
    return next((parent for parent in (folder, *folder.parents) if (parent / ".git").exists()), None)


def grep(folder: Path, terms: Iterable[str], *pathspecs: str) -> tuple[list[Path], list[Complaint]] | None:
    """Return the files below `folder` that hold one of `terms`, tracked or not but never ignored, and what git says.

    None where git has no repository or refuses it. Files that attributes call binary are searched, too.
    """
    threads = min(_GIT_THREADS, 2 * (os.cpu_count() or 1))
    command = [
        "grep",
        f"--threads={threads}",
        "--no-color",
        "-zlFa",
        "--untracked",
        *(word for term in terms for word in ("-e", term)),
    ]
    answer = run(folder, *command, "--", *pathspecs)
    if answer is None or answer[0] not in _FOUND_OR_NOT:
        return None
    _, output, messages = answer
    found = sorted(os.fsdecode(name) for name in output.split(b"\0") if name)
    return [folder / name for name in found], list(_complaints(folder, messages))


def grep_beside(folder: Path, terms: Iterable[str], *pathspecs: str) -> Answer | None:
    """Return what `grep` and `passed_over` do, asked for at the same time; None where git refuses the search."""
    beside: list[Listing] = []
    thread = threading.Thread(target=lambda: beside.append(passed_over(folder)))
    thread.start()
    answer = grep(folder, terms, *pathspecs)
    thread.join()
    return (answer, beside[0]) if answer and beside else None


def _complaints(folder: Path, messages: str) -> Iterator[Complaint]:
    for line in messages.splitlines():
        if match := _COMPLAINT.fullmatch(line):
            yield Complaint(folder / match["name"], match["problem"])


def passed_over(folder: Path) -> Listing:
    """Return what `grep` does not enter below `folder`: submodules, repositories inside it, links, archives."""
    answer = run(folder, "ls-files", "-z", "--stage", "--others", "--exclude-standard", "--", ".")
    repositories: list[Path] = []
    links: list[Path] = []
    archives: list[Path] = []
    for entry in (answer[1] if answer else b"").split(b"\0"):
        if entry.endswith(_ARCHIVE):
            archives.append(folder / os.fsdecode(_BLOB.sub(b"", entry, count=1)))
            continue
        if not entry or _BLOB.match(entry):  # nearly all of them
            continue
        tracked = entry.startswith((_LINK, _REPOSITORY)) and b"\t" in entry
        path = folder / os.fsdecode(entry.partition(b"\t")[2] if tracked else entry)
        if entry.startswith(_REPOSITORY) if tracked else entry.endswith(b"/"):
            repositories.append(path)
        elif path.is_symlink():
            links.append(path)
    found = sorted({path for path in archives if path.is_file() and not path.is_symlink()})
    return Listing(tuple(sorted(set(repositories))), tuple(sorted(links)), tuple(found))


def is_ignored(folder: Path) -> bool:
    """Whether `.gitignore` and its kin leave `folder` out as a whole."""
    answer = run(folder, "check-ignore", "-q", ".")
    return answer is not None and answer[0] == 0


def files(folder: Path, *pathspecs: str) -> list[Path] | None:
    """Return the files below `folder` that match, tracked or not but never ignored; None: no repository."""
    answer = run(folder, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *pathspecs)
    if answer is None or answer[0] != 0:
        return None
    return [folder / os.fsdecode(name) for name in answer[1].split(b"\0") if name]
