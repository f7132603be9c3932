"""What an account may do by the chart's roles, and what it did by the audit log of the API server."""

from __future__ import annotations

from controlplane.client import Object

Right = tuple[str, str, str]
"""Verb, group and resource."""
# Of every authenticated user, by the roles system:basic-user and system:discovery.
_EVERYBODYS = {("create", "authentication.k8s.io", "selfsubjectreviews")}


def granted(manifest: list[Object]) -> set[Right]:
    """Return what the chart's roles allow: verb, group, resource."""
    rules = [rule for role in manifest if role["kind"] in ("Role", "ClusterRole") for rule in role["rules"]]
    return {
        (verb, group, resource)
        for rule in rules
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def used(events: list[Object]) -> set[Right]:
    """Return what was asked of the API server's resources, beside what everybody may ask."""
    found: set[Right] = set()
    for event in events:
        if target := event.get("objectRef"):
            resource = "/".join(filter(None, (target["resource"], target.get("subresource"))))
            found.add((event["verb"], target.get("apiGroup", ""), resource))
    return found - _EVERYBODYS


def refused(events: list[Object]) -> list[str]:
    """Return the calls that RBAC refused."""
    return [
        f"{event['verb']} {event['requestURI']}" for event in events if event["responseStatus"]["code"] in (401, 403)
    ]
