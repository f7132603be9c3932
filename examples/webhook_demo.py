#!/usr/bin/env python3
"""The second part of `make demo`: the webhook, run on this machine, is sent the example Pods as they are created."""

from __future__ import annotations

import base64
import json
import re
import ssl
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, TypeAlias

import jsonpatch
import yaml12

from gpu2dra import Object
from gpu2dra.converted import ANNOTATION
from gpu2dra.kinds import kind_of, matches
from gpu2dra_webhook.certificates.authority import create, issue

HERE = Path(__file__).resolve().parent
SHOWN = ("cuda-pod.yaml", "sidecars.yaml")
"""The examples that are shown whole: the plainest one, and one where init containers share with others."""
NAMESPACE = "default"
WIDTH = 110
HOUR = 3600.0
PLACEHOLDER = re.compile(r"\$\{\w+:?[=-](?P<default>[^}]*)\}")

Pod: TypeAlias = tuple[str, str, str, Object]
"""The example's file, what the Pod is made by, the namespace that it is made in, and the Pod."""


def pods(folder: Path) -> Iterator[Pod]:
    """Yield the Pods of all examples, as the API server would see them come from users and controllers."""
    for path in sorted(folder.iterdir()):
        text = PLACEHOLDER.sub(r"\g<default>", path.read_text("utf-8"))  # as Flux and envsubst fill them in
        for obj in yaml12.parse_yaml(text, multi=True):
            for maker, namespace, pod in pods_of(obj):
                yield path.name, maker, namespace, admitted(pod)


def pods_of(obj: Any) -> Iterator[tuple[str, str, Object]]:
    """Yield the Pods of one object: itself, or made from its templates with a name that the server completes."""
    kind = kind_of(obj) if isinstance(obj, dict) else None
    if kind is None:
        return
    for pattern in kind.objects:
        for _, inner in matches(obj, pattern):
            yield from pods_of(inner)
    metadata = obj.get("metadata") or {}
    name = metadata.get("name") or metadata.get("generateName", "").rstrip("-")
    namespace = metadata.get("namespace", NAMESPACE)
    if kind.kind == "Pod":
        yield f"Pod {name}", namespace, obj
        return
    templates = [template for pattern in kind.templates for _, template in matches(obj, pattern)]
    templates += [{"spec": spec} for pattern in kind.specs for _, spec in matches(obj, pattern)]
    for template in templates:
        spec, own = template.get("spec"), template.get("metadata") or {}
        if isinstance(spec, dict) and spec.get("containers"):
            copied = {key: own[key] for key in ("labels", "annotations") if key in own}
            metadata = {"generateName": f"{name}-", **copied}
            pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
            yield f"{kind.kind} {name}", namespace, pod


def admitted(pod: Object) -> Object:
    """Return the Pod with the requests that the server fills in from limits before it asks webhooks."""
    spec = pod["spec"]
    for container in (*spec.get("initContainers", ()), *spec["containers"]):
        if limits := container.get("resources", {}).get("limits"):
            container["resources"]["requests"] = {**limits, **container["resources"].get("requests", {})}
    return pod


class Webhook:
    """One connection to the webhook, kept open as the API server keeps its own."""

    def __init__(self, port: int, authority: str) -> None:
        context = ssl.create_default_context(cadata=authority)
        self._connection = HTTPSConnection("127.0.0.1", port, context=context, timeout=30)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def review(self, namespace: str, pod: Object) -> Object:
        """Return the response to an admission review for the creation of `pod`."""
        request = {
            "uid": str(uuid.uuid4()), "operation": "CREATE", "namespace": namespace, "object": pod,
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
        }  # fmt: skip
        review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
        body = json.dumps(review).encode()
        self._connection.request("POST", "/mutate?timeout=10s", body, {"Content-Type": "application/json"})
        answer = json.loads(self._connection.getresponse().read())
        if answer.get("response", {}).get("uid") != request["uid"]:
            raise SystemExit(f"demo: the webhook answered {answer}")
        response: Object = answer["response"]
        return response


@contextmanager
def running() -> Iterator[Webhook]:
    """Start the webhook on a free port of this machine, with a certificate made for it; end it with the block."""
    now = time.time()
    authority = create(now, HOUR)
    certificate, begin, key = issue(authority, ["127.0.0.1"], now, HOUR).chain.partition(b"-----BEGIN PRIVATE KEY")
    with tempfile.TemporaryDirectory(prefix="gpu2dra-demo-") as folder:
        (Path(folder) / "tls.crt").write_bytes(certificate)
        (Path(folder) / "tls.key").write_bytes(begin + key)
        arguments = ["--store", "memory", "--bind-address", "127.0.0.1", "--port", "0", "--metrics-port", "0"]
        print("$ gpu2dra-webhook", *arguments, flush=True)
        command = [sys.executable, "-m", "gpu2dra_webhook", *arguments, "--certificates", "files"]
        with subprocess.Popen(  # noqa: S603 - fixed words and a folder of our own
            [*command, "--certificate-dir", folder], stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                with closing(Webhook(serving_port(process), authority.pem.decode())) as webhook:
                    yield webhook
            finally:
                process.terminate()


def serving_port(process: subprocess.Popen[str]) -> int:
    """Wait for the line that names the port; raise SystemExit with what was said when there is none."""
    said = []
    for line in process.stderr or ():
        said.append(line)
        if '"msg": "serving"' in line:
            return int(json.loads(line)["port"])
    raise SystemExit(f"demo: the webhook did not start:\n{''.join(said)}")


def show(namespace: str, pod: Object, response: Object) -> None:
    """Print a Pod before admission, the patch, and the templates that were made for it."""
    operations = json.loads(base64.b64decode(response["patch"]))
    print("\nThe Pod as the API server sends it:\n", yaml12.format_yaml({"spec": pod["spec"]}), sep="\n")
    print("\nThe answer, a JSON Patch:\n")
    for operation in operations:
        value = f" {json.dumps(operation['value'])}" if "value" in operation else ""
        line = f"{operation['op']:<7} {operation['path']}{value}"
        print(line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…")
    record = jsonpatch.apply_patch(pod, operations)["metadata"]["annotations"][ANNOTATION]
    print("\nThe ResourceClaimTemplates that are there before the answer is:\n")
    for name, spec in json.loads(record)["templates"].items():
        print(yaml12.format_yaml({"metadata": {"name": name, "namespace": namespace}, "spec": spec}))


def main() -> None:
    """Show the demo for the examples beside this file, or for the folder that the command line names."""
    examples = Path(sys.argv[1]).resolve() if sys.argv[1:] else HERE
    found = list(pods(examples / "legacy"))
    print("\n=== The same in a cluster: the webhook converts Pods while they are created. No cluster is needed here:\n")
    converted: set[str] = set()
    with running() as webhook:
        answers = [(*pod, webhook.review(*pod[2:])) for pod in found]
    for name, _, namespace, pod, response in answers:
        if name in SHOWN and name not in converted and "patch" in response:
            print(f"\n--- {name}")
            show(namespace, pod, response)
            converted.add(name)
    print(f"\n--- all {len(found)} Pods of the examples, over one connection\n")
    converted = set()
    for name, maker, _, _, response in answers:
        audit = response["auditAnnotations"]
        told = audit.get("templates") or "; ".join(response.get("warnings", ())) or audit["reason"]
        print(f"{audit['outcome']:<11} {name:<25} {maker:<35} {told}")
        converted |= {name} if audit["outcome"] == "converted" else set()
    if missing := {name for name, *_ in found} - converted:
        raise SystemExit(f"demo: the webhook converted no Pod of {', '.join(sorted(missing))}")


if __name__ == "__main__":
    main()
