#!/usr/bin/env python3
"""What `make demo` shows: the legacy manifests of this folder converted in a copy, then their Pods by the webhook."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
FOLDER = "manifests"
"""What the copy of the examples is called."""
SHOWN = ("cuda-pod.yaml", "sidecars.yaml")
"""The examples whose diff is shown: the plainest one, and one where init containers share with others."""
LINES = 6
"""How much of a long list is shown."""
CLEAN, FOUND = 0, 1
"""Exit codes of gpu2dra: nothing to do; something found or changed."""


class Demo:
    """A git repository with a copy of the examples, and the commands that are shown in it."""

    def __init__(self, examples: Path, repository: Path) -> None:
        self.examples = examples
        self.repository = repository
        self.names = sorted(path.name for path in (examples / "legacy").iterdir())
        # The user's own git settings (hooks, signing, templates) have no business in a throw-away repository.
        clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        self.environment = clean | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}

    def show(self) -> None:
        """Run all steps; raise SystemExit when one does not do what it should."""
        shutil.copytree(self.examples / "legacy", self.repository / FOLDER)
        for step in (["init", "--quiet"], ["add", "--all"]):
            self.run(["git", *step], CLEAN)

        self.heading(f"{len(self.names)} files ask for GPUs by extended resource. gpu2dra finds the requests:")
        *lines, last = self.tool("check", FOLDER, expected=FOUND).splitlines()
        findings = [line for line in lines if line.startswith(f"{FOLDER}/")]
        rest = [*lines[len(findings) :], last]
        more = [f"… and {len(findings) - LINES} more"] if len(findings) > LINES else []
        print(*findings[:LINES], *more, *rest, sep="\n")

        self.heading("What would change, in a plain pod and in one whose init containers share with others:")
        print(self.tool("diff", *(f"{FOLDER}/{name}" for name in SHOWN), expected=FOUND), end="")

        self.heading("Convert all of them; only the lines that had to change do:")
        print(self.tool("convert", FOLDER, expected=FOUND), end="")
        self.run(["git", "add", "--intent-to-add", "."], CLEAN)
        print("\n$ git diff --stat")
        print(self.run(["git", "diff", "--stat=100"], CLEAN), end="")
        changed = set(self.run(["git", "diff", "--name-only", "-z"], CLEAN).split("\0"))
        for name in self.names:
            self.judge(name, changed)

        self.heading("And look again: nothing is left to do (what is noted is left alone on purpose).")
        print(self.tool("check", FOLDER, expected=CLEAN), end="")

    def judge(self, name: str, changed: set[str]) -> None:
        """Hold the result of one example to its twin; one that has none must at least have changed."""
        if f"{FOLDER}/{name}" not in changed:
            raise SystemExit(f"demo: {name} was not converted")
        twin = self.examples / "converted" / name
        if twin.exists() and twin.read_bytes() != (self.repository / FOLDER / name).read_bytes():
            raise SystemExit(f"demo: {name} is not what examples/converted/{name} says (see `make examples`)")

    def heading(self, text: str) -> None:
        """Print what the next step shows."""
        print(f"\n=== {text}\n", flush=True)

    def tool(self, *arguments: str, expected: int) -> str:
        """Print a gpu2dra command, run it and return its output."""
        print("$ gpu2dra", *arguments)
        return self.run([sys.executable, "-m", "gpu2dra_migrate", *arguments], expected)

    def run(self, command: list[str], expected: int) -> str:
        """Run a command in the repository and return its output; raise SystemExit for an unexpected exit code."""
        done = subprocess.run(  # noqa: S603 - fixed words and names of files in this folder
            command, cwd=self.repository, env=self.environment, check=False, capture_output=True, text=True
        )
        if done.returncode != expected:
            print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
            raise SystemExit(f"demo: {' '.join(command[-3:])}: exit code {done.returncode} in place of {expected}")
        return done.stdout


def main() -> None:
    """Show the demo for the examples beside this file, or for the folder that the command line names."""
    examples = Path(sys.argv[1]).resolve() if sys.argv[1:] else HERE
    with tempfile.TemporaryDirectory(prefix="gpu2dra-demo-") as folder:
        Demo(examples, Path(folder)).show()
    sys.stdout.flush()
    webhook = [sys.executable, str(HERE / "webhook_demo.py"), str(examples)]
    if code := subprocess.run(webhook, check=False).returncode:  # noqa: S603 - a file beside this one
        sys.exit(code)
    print(
        "\nThe same manifests stand in examples/legacy and examples/converted.",
        "Now point it at a repository of yours; check and diff write nothing:",
        "",
        "    .venv/bin/gpu2dra check PATH",
        "    .venv/bin/gpu2dra diff PATH",
        "    .venv/bin/gpu2dra convert PATH",
        "    .venv/bin/gpu2dra explain DRA001",
        sep="\n",
    )


if __name__ == "__main__":
    main()
