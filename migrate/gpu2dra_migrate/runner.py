"""A run over many files: find them, convert groups and single files (in several processes), gather the results."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gpu2dra_migrate.files import absolute
from gpu2dra_migrate.finders import find_groups
from gpu2dra_migrate.groups import Group
from gpu2dra_migrate.renames import find_renames, tell_others, users
from gpu2dra_migrate.search.discover import Found, find, is_for_groups
from gpu2dra_migrate.worker import FileResult, Job, Mode, Settings, Worker, failed

__all__ = ["Configure", "FileResult", "Mode", "Settings", "run"]

Configure = Callable[[Path, bool], Settings | None]
"""Given a file and whether it was named: its settings, or None when the configuration leaves it out."""
_FILES_PER_PROCESS = 48
"""A second process costs about as long to start as this many manifests take."""
_CHUNK = 16
"""Files that a process takes at a time."""


def run(paths: Sequence[Path], settings: Settings, configure: Configure | None = None) -> Iterator[FileResult]:
    """Yield the result of every candidate below `paths`, in order.

    `settings` hold for all files, unless `configure` has its own for a file. With Mode.CONVERT files are written as
    they come. What belongs to a chart or a kustomization converts with it, where its first file stands; Mode.VERIFY
    looks at nothing else. Problems of one file are its findings; the others go on. Raises ConfigError for a
    configuration that cannot be used, before anything is written.
    """
    configure = configure or (lambda _, __: settings)
    named = {path for path in paths if not path.is_dir()}
    candidates = list(find(paths))
    within = tuple(map(absolute, paths))
    work = list(_jobs(candidates, named, configure, within))
    owners = {path: group for group in find_groups(work) for path in group.files}
    grouped = {job.path: owners.get(absolute(job.path)) for job in work} if owners else {}
    work = [job for job in work if not grouped.get(job.path) and _stands_alone(job)]
    renames = find_renames(work)
    if renames:
        more = [Found(path) for path in users(renames, [path for path in paths if path not in named])]
        known = {job.path for job in work}
        more = [found for found in more if found.path not in known]
        candidates += more
        work += _jobs(more, named, configure, within)
    todo = {job.path for job in work}
    converted = _convert_all(work, Worker(renames), settings.jobs)
    if renames:
        converted = tell_others(converted, renames, [job.path for job in work])
    done: set[int] = set()
    for found in candidates:
        if found.code:
            yield failed(found.path, found.code, found.message)
        elif found.path in todo:
            yield next(converted)
        elif (group := grouped.get(found.path)) and id(group) not in done:
            done.add(id(group))
            yield from _results(group, found.path)


def _stands_alone(job: Job) -> bool:
    """Whether a file that belongs to no group is looked at all the same."""
    return job.settings.mode is not Mode.VERIFY and (job.named or not is_for_groups(job.path))


def _results(group: Group, path: Path) -> Iterator[FileResult]:
    """Yield the results of a group; an error of our own is told like one of its file, so that the others are done."""
    try:
        yield from group.results()
    except Exception as error:
        if os.environ.get("GPU2DRA_DEBUG"):
            raise
        yield failed(path, "DRA599", f"{type(error).__name__}: {error}")


def _jobs(
    candidates: Sequence[Found], named: set[Path], configure: Configure, within: tuple[Path, ...]
) -> Iterator[Job]:
    for found in candidates:
        if not found.code:
            is_named = found.path in named
            if settings := configure(found.path, is_named):
                yield Job(found.path, settings, is_named, within)


def _convert_all(work: list[Job], worker: Worker, jobs: int) -> Iterator[FileResult]:
    processes = min(jobs or os.cpu_count() or 1, len(work) // _FILES_PER_PROCESS)
    if processes < 2:  # noqa: PLR2004 - one process needs no pool
        return map(worker, work)
    return _convert_in_processes(work, worker, processes)


def _convert_in_processes(work: list[Job], worker: Worker, processes: int) -> Iterator[FileResult]:
    import multiprocessing  # noqa: PLC0415 - small runs need none of it
    from concurrent.futures import ProcessPoolExecutor  # noqa: PLC0415 - as above

    # fork: the modules are there already, and no thread runs that it could catch in the middle of something.
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else None)
    pool = ProcessPoolExecutor(processes, context, initializer=_begin, initargs=(worker,))
    try:
        yield from pool.map(_work, work, chunksize=_CHUNK)
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_worker: Worker | None = None
_stopped = False


def _begin(worker: Worker) -> None:
    """Start a process of the pool: an interrupt lets it finish the file in hand, and no other."""
    import signal  # noqa: PLC0415 - as above

    global _worker  # noqa: PLW0603 - the process exists for this worker
    _worker = worker
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)


def _stop(number: int, frame: object) -> None:
    global _stopped  # noqa: PLW0603 - a signal handler has no other place
    _stopped = True


def _work(job: Job) -> FileResult:
    if _worker is None or _stopped:
        return FileResult(job.path)
    return _worker(job)
