"""The hooks that this repository offers to others, run by the real pre-commit in a real git repository."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import yaml

if TYPE_CHECKING:
    from pathlib import Path

LEGACY = """\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: trainer
spec:
  selector:
    matchLabels: {app: trainer}
  template:
    metadata:
      labels: {app: trainer}
    spec:
      containers:
      - name: trainer
        image: registry.example/trainer:1
        resources:
          limits:
            nvidia.com/gpu: 2   # both cards
"""
PLAIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n"


class Workspace:
    """A git repository of a user, and how pre-commit and git are run in it."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        # No GIT_* of a git that runs these tests as its own hook, no settings of whoever runs them.
        clean = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PRE_COMMIT"))}
        who = {
            f"GIT_{role}_{what}": "test@example.com" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
        }
        settings = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PRE_COMMIT_HOME": str(cache)}
        self.environment = clean | who | settings | {"PRE_COMMIT_COLOR": "never"}

    def run(self, *command: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command in the repository and return its output, errors merged in."""
        return subprocess.run(
            command,
            cwd=cwd or self.folder,
            env=self.environment,
            check=False,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        """Run git, which must succeed."""
        done = self.run("git", *arguments, cwd=cwd)
        assert done.returncode == 0, done.stdout
        return done.stdout.strip()

    def hook(self, name: str) -> subprocess.CompletedProcess[str]:
        """Run one hook over all files."""
        return self.run(sys.executable, "-m", "pre_commit", "run", "--all-files", "--verbose", name)

    def commit_all(self, folder: Path) -> str:
        """Make a folder a git repository, commit all that is in it and return the commit."""
        self.git("init", "--quiet", cwd=folder)
        self.git("add", "--all", cwd=folder)
        self.git("commit", "--quiet", "--no-verify", "--message", "all", cwd=folder)
        return self.git("rev-parse", "HEAD", cwd=folder)


@pytest.mark.slow
def test_check_refuses_and_convert_repairs(source_tree: Path, tmp_path: Path) -> None:
    """One story, since building the hooks' environment is what takes the time."""
    user = Workspace(tmp_path / "user", tmp_path / "cache")
    user.folder.mkdir()
    hooks = [{"id": "gpu2dra-check"}, {"id": "gpu2dra-convert"}]
    repo = {"repo": str(source_tree), "rev": user.commit_all(source_tree), "hooks": hooks}
    (user.folder / ".pre-commit-config.yaml").write_text(yaml.safe_dump({"repos": [repo]}), "utf-8")
    legacy, plain = user.folder / "deploy.yaml", user.folder / "plain.yaml"
    legacy.write_text(LEGACY, "utf-8")
    plain.write_text(PLAIN, "utf-8")
    user.commit_all(user.folder)

    refused = user.hook("gpu2dra-check")
    assert refused.returncode == 1, refused.stdout
    assert "- exit code: 1" in refused.stdout
    assert "deploy.yaml:17:" in refused.stdout
    assert "nvidia.com/gpu" in refused.stdout
    assert legacy.read_text("utf-8") == LEGACY

    repaired = user.hook("gpu2dra-convert")
    assert repaired.returncode == 1, repaired.stdout
    assert "- files were modified by this hook" in repaired.stdout
    template, deployment = yaml.safe_load_all(legacy.read_text("utf-8"))
    assert template["kind"] == "ResourceClaimTemplate"
    pod = deployment["spec"]["template"]["spec"]
    assert pod["resourceClaims"][0]["resourceClaimTemplateName"] == template["metadata"]["name"]
    assert "nvidia.com/gpu" not in pod["containers"][0]["resources"].get("limits", {})
    assert user.git("diff", "--name-only") == "deploy.yaml"

    user.git("add", "--all")
    for hook in ("gpu2dra-convert", "gpu2dra-check"):
        passed = user.hook(hook)
        assert passed.returncode == 0, passed.stdout
        assert "Passed" in passed.stdout
    assert user.git("diff", "--name-only") == ""


@pytest.mark.parametrize(
    ("command", "file"),
    [("validate-manifest", ".pre-commit-hooks.yaml"), ("validate-config", ".pre-commit-config.yaml")],
)
def test_pre_commit_takes_the_file(root: Path, tmp_path: Path, command: str, file: str) -> None:
    user = Workspace(tmp_path, tmp_path / "cache")
    done = user.run(sys.executable, "-m", "pre_commit", command, str(root / file))
    assert (done.returncode, done.stdout) == (0, "")
