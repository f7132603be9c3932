"""Measure the command line against the bars of the design (section 8); `make bench` runs it.

Every figure is a whole process, after one warm-up, in turn with its baseline in the same run; medians are told.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.figures import Row, write

GPU2DRA = (str(Path(sys.executable).with_name("gpu2dra")),)
FILES = 50_000
GPU_SHARE = 100  # one file in so many asks for a GPU
CONVERTED = 2_000
RUNS = 7

PLAIN = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: settings-{number}
  labels:
    app.kubernetes.io/name: service-{number}
data:
  application.yaml: |
    server:
      port: 8080
    feature-{number}: enabled
"""
DEPLOYMENT = """\
# Serves model {number}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: model-{number}
  labels:
    app: model-{number}
spec:
  replicas: 2
  selector:
    matchLabels:
      app: model-{number}
  template:
    metadata:
      labels:
        app: model-{number}
    spec:
      containers:
      - name: server
        image: registry.example.com/inference/server:1.{number}
        args: ["--model", "/models/{number}", "--tensor-parallel-size", "2"]
        env:
        - name: HF_HOME
          value: /models/cache
        - name: TOKEN
          valueFrom:
            secretKeyRef:
              name: hub
              key: token
        ports:
        - containerPort: 8000
          name: http
        readinessProbe:
          httpGet:
            path: /health
            port: http
          periodSeconds: 10
        resources:
          requests:
            cpu: "8"
            memory: 64Gi
            nvidia.com/gpu: 2
          limits:
            memory: 64Gi
            nvidia.com/gpu: 2 # both cards
        volumeMounts:
        - name: models
          mountPath: /models
        - name: shm
          mountPath: /dev/shm
      nodeSelector:
        pool: gpu
      volumes:
      - name: models
        persistentVolumeClaim:
          claimName: models
      - name: shm
        emptyDir:
          medium: Memory
---
apiVersion: v1
kind: Service
metadata:
  name: model-{number}
spec:
  selector:
    app: model-{number}
  ports:
  - port: 80
    targetPort: http
"""


def write_tree(folder: Path, files: int, share: int) -> None:
    """Write `files` manifests, one in `share` with a GPU, a hundred to a folder, into a git repository."""
    for number in range(files):
        place = folder / f"team-{number // 1000:03}" / f"app-{number // 100:04}"
        place.mkdir(parents=True, exist_ok=True)
        text = DEPLOYMENT if number % share == 0 else PLAIN
        (place / f"manifest-{number}.yaml").write_text(text.format(number=number), encoding="utf-8")
    git = ("git", "-c", "user.name=bench", "-c", "user.email=bench@example.com", "-C", str(folder))
    for command in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "tree")):
        subprocess.run([*git, *command], check=True)


def seconds(command: Sequence[str], folder: Path) -> float:
    """Return the wall-clock seconds of one whole process; its exit code must be one that these commands end with."""
    # An installed tool has its bytecode; without it Python would compile every module again in each run.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begin = time.perf_counter()
    done = subprocess.run(
        command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    took = time.perf_counter() - begin
    if done.returncode not in (0, 1):
        sys.exit(f"{command}: exit {done.returncode}: {done.stderr.decode()}")
    return took


def in_turn(
    ours: Sequence[str],
    baseline: Sequence[str],
    folder: Path,
    before: Callable[[], object] = lambda: None,
    runs: int = RUNS,
) -> tuple[float, float]:
    """Return the median seconds of both commands, run in turn after one warm-up of each."""
    times: list[tuple[float, float]] = []
    for number in range(runs + 1):
        before()
        pair = (seconds(ours, folder), seconds(baseline, folder))
        if number:
            times.append(pair)
    return statistics.median(one for one, _ in times), statistics.median(other for _, other in times)


def main() -> None:
    """Measure all rows and write them."""
    rows = []
    python = (sys.executable, "-c", "pass")
    with tempfile.TemporaryDirectory(prefix="gpu2dra-bench-") as name:
        folder = Path(name)
        one = folder / "one"
        write_tree(one, 1, 1)
        for what, bar, arguments in (
            ("gpu2dra --version", 80, ["--version"]),
            ("check of one file", 150, ["check", "team-000/app-0000/manifest-0.yaml"]),
        ):
            ours, other = (1000 * took for took in in_turn((*GPU2DRA, *arguments), python, one, runs=15))
            rows.append(Row(what, f"{bar} ms", ours, "ms", "python -c pass", other, ours <= bar))
        # The conversion goes first: the other tree keeps the disk busy for a while with what was written into it.
        conversion = _convert(folder / "many", folder / "copy")
        rows += [_check(folder / "tree", one), conversion]
    for row in rows:
        print(row)
    write("cli", rows)


def _check(tree: Path, one: Path) -> Row:
    """Measure the search of a large repository."""
    write_tree(tree, FILES, GPU_SHARE)
    start, _ = in_turn((*GPU2DRA, "--version"), (sys.executable, "-c", "pass"), one, runs=3)
    grep = ("git", "grep", "-lF", "nvidia.com/gpu")
    ours, other = in_turn((*GPU2DRA, "check", "--quiet"), grep, tree)
    bar = 2 * other + start
    words = f"2 × git grep -l plus start-up ({bar:.2f} s in this run)"
    return Row(f"check of {FILES:,} files, 1 % with a GPU", words, ours, "s", "git grep -l", other, ours <= bar)


def _convert(many: Path, copy: Path) -> Row:
    """Measure conversion, checks and writing included."""
    write_tree(many, CONVERTED, 1)

    def fresh() -> None:
        subprocess.run(["git", "-C", str(many), "checkout", "-q", "."], check=True)
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir()

    copying = ("cp", "-r", *map(str, sorted(many.glob("team-*"))), str(copy))
    ours, other = in_turn((*GPU2DRA, "convert", "--quiet"), copying, many, fresh, runs=5)
    rate, copies = CONVERTED / ours, CONVERTED / other
    return Row(f"convert of {CONVERTED:,} manifests", "1,000 files/s", rate, "files/s", "cp -r", copies, rate >= 1000)


if __name__ == "__main__":
    main()
