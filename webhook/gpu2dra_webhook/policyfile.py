"""The policy file: read strictly at start, read again when its content changes, the last good policy kept."""

from __future__ import annotations

import hashlib
import logging
import threading
from typing import TYPE_CHECKING

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from gpu2dra.policy import BUILT_IN, Policy, PolicyError, Problem
from gpu2dra.policy.load import load
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.settings import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

_log = logging.getLogger(__name__)

INTERVAL = 5.0
"""Seconds between two looks at the content. Modification times say little: the kubelet exchanges symbolic links."""
_DIGEST = 12


class PolicyFile:
    """The policy in a file, or the built-in one where there is no file."""

    def __init__(self, path: Path | None, metrics: Metrics, interval: float = INTERVAL) -> None:
        """Read the file; SettingsError, with everything that is wrong in it, when it cannot be used.

        To start with the built-in policy instead would give pods other devices than the operator has chosen.
        """
        self._path = path
        self._metrics = metrics
        self._interval = interval
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None
        self._seen: bytes | None = None
        self._policy = BUILT_IN
        self._holds = False
        """Whether the file has ever been right."""
        self._problems: tuple[str, ...] = ()
        if path is not None:
            self.look(path)
        if self._problems:
            raise SettingsError("\n".join(f"{path}: {line}" for line in self._problems))

    def policy(self) -> Policy:
        """Return the policy that holds now."""
        return self._policy

    def problems(self) -> tuple[str, ...]:
        """Return what is wrong with the file as it is now, while an earlier content goes on holding."""
        return self._problems

    def start(self) -> None:
        """Begin to look at the file, in a thread of its own."""
        if self._path is not None:
            self._thread = threading.Thread(target=self._run, args=[self._path], name="policy", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopped.set()
        if self._thread:
            self._thread.join()

    def look(self, path: Path) -> None:
        """Read the file, and take its policy over if it has changed and is right."""
        try:
            content = path.read_bytes()
        except OSError as error:
            self._seen = None
            self._refuse((error.strerror or type(error).__name__,))
            return
        if content == self._seen:
            return
        self._seen = content
        try:
            policy = parse(content)
        except PolicyError as error:
            self._refuse(tuple(map(str, error.problems)))
            return
        self._policy, self._problems, self._holds = policy, (), True
        self._metrics.policy_problems(0)
        digest = hashlib.sha256(content).hexdigest()[:_DIGEST]
        self._metrics.policy_reloaded("ok")
        self._metrics.policy_loaded(digest)
        _log.info("policy loaded", extra={"file": str(path), "digest": digest, "rules": len(policy.rules)})
        for warning in policy.warnings:
            _log.warning("policy: %s", warning)

    def _refuse(self, problems: tuple[str, ...]) -> None:
        if problems != self._problems:
            self._problems = problems
            self._metrics.policy_problems(len(problems))
            self._metrics.policy_reloaded("error")
            now = "what held before goes on" if self._holds else "none held before, so this replica cannot start"
            _log.error("the policy cannot be used; %s: %s", now, " ".join(problems))

    def _run(self, path: Path) -> None:
        while not self._stopped.wait(self._interval):
            self.look(path)


def parse(content: bytes) -> Policy:
    """Return the policy in one YAML or JSON document; PolicyError tells everything that is wrong with it."""
    try:
        data = YAML(typ="safe", pure=True).load(content)  # the C parser crashes the process at deep nesting
    except MarkedYAMLError as error:
        mark = error.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise PolicyError([Problem("", f"{where}{error.problem or error.context}.")]) from error
    except (YAMLError, RecursionError, ValueError) as error:
        raise PolicyError([Problem("", f"No YAML: {str(error).splitlines()[0]}.")]) from error
    return load(data)
