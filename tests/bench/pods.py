"""Pods for benches, as an API server sends them."""

from __future__ import annotations

from typing import Any


def pods() -> list[dict[str, Any]]:
    """Return pods as controllers make them and the API server completes them: 4 to 6 KiB each, some with a sidecar."""
    probe = {"httpGet": {"path": "/health", "port": "http", "scheme": "HTTP"}, "timeoutSeconds": 1, "periodSeconds": 10}
    mounts = [
        {"name": "models", "mountPath": "/models"},
        {"name": "token", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
    ]
    quiet = {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}

    def container(name: str, gpus: int) -> dict[str, Any]:
        amount = {"cpu": "8", "memory": "64Gi"} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
        return {
            "name": name, "image": f"registry.example.com/{name}:1.0", "args": ["--model", "/models/llama-70b"],
            "env": [{"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(15)],
            "ports": [{"name": "http", "containerPort": 8000, "protocol": "TCP"}], "readinessProbe": probe,
            "resources": {"limits": amount, "requests": amount}, "volumeMounts": mounts, **quiet,
        }  # fmt: skip

    shapes = [
        {"containers": [container("server", 2)]},
        {"containers": [container("server", 1), container("metrics", 0)]},
        {"containers": [container("trainer", 8)], "initContainers": [container("loader", 1)]},
    ]
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "vllm-6d9c7b5f4d", "controller": True}
    fields: dict[str, Any] = {"f:containers": {f'k:{{"name":"{name}"}}': {"f:env": {}} for name in "abcdefgh"}}
    managed = {"manager": "kube-controller-manager", "operation": "Update", "fieldsV1": fields}
    metadata = {
        "generateName": "vllm-6d9c7b5f4d-", "labels": {"app": "vllm", "pod-template-hash": "6d9c7b5f4d"},
        "annotations": {"prometheus.io/scrape": "true"}, "ownerReferences": [owner], "managedFields": [managed],
    }  # fmt: skip
    tolerations = [{"key": key, "operator": "Exists"} for key in ("node.kubernetes.io/not-ready", "nvidia.com/gpu")]
    common = {
        "restartPolicy": "Always", "schedulerName": "default-scheduler", "serviceAccountName": "default", "priority": 0,
        "volumes": [{"name": "models", "emptyDir": {}}, {"name": "token", "projected": {"sources": []}}],
        "tolerations": tolerations, "nodeSelector": {"pool": "gpu"}, "securityContext": {},
    }  # fmt: skip
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**common, **shape}, "status": {}}
        for shape in shapes
    ]
