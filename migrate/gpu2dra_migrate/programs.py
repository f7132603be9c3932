"""Runs other programs (helm, kustomize) on other people's files: with limits, no network, cluster or settings."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TIME_LIMIT = 60.0
"""Seconds that one call may take; the largest public charts take two."""
MEMORY_LIMIT = 4 << 30
"""Bytes that a program may fill: a template can ask for any amount."""
_OVERRIDES = {"helm": "GPU2DRA_HELM", "kustomize": "GPU2DRA_KUSTOMIZE"}
_WRAPPERS = (("unshare", "--user", "--map-root-user", "--net"), ("unshare", "--net"))
"""What gives a program a network of its own, with nothing in it: for ordinary users where the system lets them."""
_NO_INPUT = subprocess.DEVNULL


class ProgramError(Exception):
    """A program failed or could not be run; the text is what it says, in one paragraph."""


def find(name: str) -> str | None:
    """Return the path of the program `name`, or None where there is none.

    GPU2DRA_HELM and GPU2DRA_KUSTOMIZE name one that is not on PATH; an empty value means that none is to be used.
    """
    chosen = os.environ.get(_OVERRIDES.get(name, ""))
    if chosen is None:
        return shutil.which(name)
    return shutil.which(chosen) if chosen else None


def isolated() -> bool:
    """Whether programs run without a network. Where not, nothing may be run that could fetch."""
    return bool(_wrapper())


def run(
    command: Sequence[str], *, stdin: str | None = None, cwd: Path | None = None,
    environment: Mapping[str, str] = {}, limit: float | None = None,
) -> str:  # fmt: skip
    """Run `command` and return what it prints; raise ProgramError when it fails or takes more than `limit` seconds.

    It sees an empty home, no cluster, and of the caller's environment nothing but what `environment` holds.
    """
    with tempfile.TemporaryDirectory(prefix="gpu2dra-home-") as home:
        settings = {"PATH": os.defpath, "HOME": home, "TMPDIR": home, "KUBECONFIG": os.devnull, "LC_ALL": "C.UTF-8"}
        settings |= {f"XDG_{name}_HOME": home for name in ("CACHE", "CONFIG", "DATA", "STATE")}
        try:
            process = subprocess.Popen(  # noqa: S603 - no shell; the caller names the program
                [*_wrapper(), *command], cwd=cwd, env={**settings, **environment}, start_new_session=True,
                stdin=_NO_INPUT if stdin is None else subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
        except OSError as error:
            raise ProgramError(f"{command[0]} cannot be run: {error.strerror or error}") from None
        try:
            _limit_memory(process.pid)
            output, messages = process.communicate(
                None if stdin is None else stdin.encode(), timeout=limit or TIME_LIMIT
            )
        except subprocess.TimeoutExpired:
            raise ProgramError(f"{os.path.basename(command[0])} takes more than {limit or TIME_LIMIT:g} s") from None  # noqa: PTH119 - a string
        finally:
            _end(process)
    said = " ".join(messages.decode("utf-8", "replace").split())
    if process.returncode < 0:
        raise ProgramError(f"{said or 'it was ended'} (signal {-process.returncode})")
    if process.returncode:
        raise ProgramError(said or f"exit code {process.returncode}")
    return output.decode("utf-8", "replace")


def _limit_memory(pid: int) -> None:
    """Limit what a process that has just begun may fill, where the system can do that."""
    if sys.platform == "linux":
        import resource  # noqa: PLC0415 - not on every system

        with contextlib.suppress(OSError, ValueError):
            resource.prlimit(pid, resource.RLIMIT_DATA, (MEMORY_LIMIT, MEMORY_LIMIT))


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a program with all that it has started, also when an interrupt ends this one."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream:
            with contextlib.suppress(OSError):
                stream.close()


@cache
def _wrapper() -> tuple[str, ...]:
    """Return the command in front of another that takes the network away, or nothing where the system has none."""
    for wrapper in _WRAPPERS:
        program = shutil.which(wrapper[0])
        if program is None:
            continue
        command = (program, *wrapper[1:])
        try:
            done = subprocess.run([*command, "true"], capture_output=True, timeout=10, check=False)  # noqa: S603 - fixed
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return (*command, "--")
    return ()
