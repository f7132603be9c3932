"""Keeps a child process from outliving the process that started it, even when that one is killed with SIGKILL.

Used as a program it takes the id of its parent and a command line, asks the kernel for SIGKILL at the death of that
parent, and becomes the command. Only Linux has that service; elsewhere the command runs without it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def leashed(command: Sequence[str | Path]) -> list[str]:
    """Return the command line that runs a command and ends it when the calling process ends.

    Call it and start the child from one thread that lives as long as the child should: the kernel counts the thread
    that started the child as its parent.
    """
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *map(str, command)]


def _main(parent: int, command: list[str]) -> None:
    if sys.platform == "linux":
        if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL)) != 0:
            raise OSError(ctypes.get_errno(), "prctl(PR_SET_PDEATHSIG)")
        if os.getppid() != parent:  # it died before the call above
            sys.exit(1)
    os.execvp(command[0], command)  # noqa: S606 -- becoming the command is the purpose; its arguments are the caller's


if __name__ == "__main__":
    _main(int(sys.argv[1]), sys.argv[2:])
