"""Releases of charts that live elsewhere, read off the objects that ask for them: chart, version, values."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from gpu2dra.model import Object
from gpu2dra.pointers import pointer

_FLUX = "helm.toolkit.fluxcd.io/"
_ARGO = "argoproj.io/"
_K3S = "helm.cattle.io/"
Beside = Callable[[], Iterable[Any]]
_POST_RENDERED = ("v2", "v2beta2")
"""Versions of HelmRelease whose postRenderers take kustomize's `patches`."""
_VERSION = re.compile(r"\s*(?P<operator>\^|~|=|>=|)\s*v?(?P<major>\d+)(?:\.(?P<minor>\d+))?(?:\.(?P<patch>\d+))?")


@dataclass(frozen=True, slots=True)
class Version:
    """The lowest version that a release may be of; `major` says that a higher major one is none of them."""

    low: tuple[int, int, int]
    major: bool


def version_of(text: object) -> Version | None:
    """Return what a version or a range (`1.2.3`, `^1.2`, `1.x`, `>=1.0.0`) says; None where it says nothing certain."""
    match = _VERSION.match(text) if isinstance(text, str) else None
    if match is None or "||" in str(text):
        return None
    low = (int(match["major"]), int(match["minor"] or 0), int(match["patch"] or 0))
    return Version(low, match["operator"] != ">=")


@dataclass(frozen=True, slots=True)
class Release:
    """One release of a chart: `chart` is its name alone, `tool` who installs it, `name` and `namespace` of the release.

    The values stand at pointer `base` of the object, or as text in the string there (`text`). `room`: why no
    ResourceClaimTemplate can stand beside the object, or empty. `more`: other values that are not seen from here, or
    empty. `patches`: whether the tool can patch what the chart renders.
    """

    tool: str
    chart: str
    version: Version | None
    name: str
    namespace: str
    metadata: Mapping[str, Any]
    base: str
    values: Object
    text: str | None = None
    room: str = ""
    more: str = ""
    patches: bool = False
    spec: Mapping[str, Any] = field(default_factory=dict)


def releases(obj: Object, beside: Beside) -> Iterator[Release]:
    """Yield the releases in `obj` that have values in it; `beside` gives objects around it, the nearest first.

    A string of values is yielded with empty `values`, to be parsed by who wants them.
    """
    api, kind = str(obj.get("apiVersion") or ""), obj.get("kind")
    if kind == "HelmRelease" and api.startswith(_FLUX):
        yield from _flux(obj, api.removeprefix(_FLUX), beside)
    elif kind in ("Application", "ApplicationSet") and api.startswith(_ARGO):
        yield from _argo(obj)
    elif kind == "HelmChart" and api.startswith(_K3S):
        yield from _k3s(obj)
    elif kind is None and isinstance(obj.get("releases"), list):
        yield from _helmfile(obj)


# Flux


def _flux(obj: Object, version: str, beside: Beside) -> Iterator[Release]:
    spec, metadata = mapping(obj.get("spec")), mapping(obj.get("metadata"))
    values = spec.get("values")
    if not isinstance(values, dict):
        return
    chart, asked = _flux_chart(spec, beside)
    own = text(metadata.get("namespace"))
    target = text(spec.get("targetNamespace")) or own
    room = ""
    if "kubeConfig" in spec:
        room = "the release goes to another cluster than this object"
    elif target != own and mapping(spec.get("install")).get("createNamespace") is True:
        room = f"namespace {target} is made by the release, so a template cannot be in it before"
    sources = [mapping(each) for each in spec.get("valuesFrom") or () if mapping(each).get("kind") == "ConfigMap"]
    more = ", ".join(f"ConfigMap {each.get('name')}" for each in sources)
    name = text(spec.get("releaseName")) or text(metadata.get("name"))
    yield Release(
        "Flux", chart, version_of(asked), name, target, metadata, "/spec/values", values, room=room, more=more,
        patches=version in _POST_RENDERED, spec=spec,
    )  # fmt: skip


def _flux_chart(spec: Mapping[str, Any], beside: Beside) -> tuple[str, object]:
    """Return name and version of the chart of a HelmRelease, as far as it and the objects beside it say them."""
    reference = mapping(spec.get("chartRef"))
    if not reference:
        inner = mapping(mapping(spec.get("chart")).get("spec"))
        packed = mapping(inner.get("sourceRef")).get("kind") not in ("GitRepository", "Bucket")
        return last_part(inner.get("chart")), inner.get("version") if packed else None
    wanted = (reference.get("kind"), reference.get("name"))
    for other in map(mapping, beside()):
        if (other.get("kind"), mapping(other.get("metadata")).get("name")) == wanted:
            source = mapping(other.get("spec"))
            if "chart" in source:
                return last_part(source.get("chart")), source.get("version")
            named = mapping(source.get("ref"))
            return last_part(source.get("url")), named.get("semver") or named.get("tag")
    return text(reference.get("name")), None


def local_charts(obj: Object) -> Iterator[tuple[str, str]]:
    """Yield the pointer below which values for a chart in a repository stand, and the path of that chart."""
    kind, spec = obj.get("kind"), mapping(obj.get("spec"))
    if kind == "HelmRelease":
        chart = mapping(mapping(spec.get("chart")).get("spec"))
        if mapping(chart.get("sourceRef")).get("kind") in ("GitRepository", "Bucket"):
            yield "/spec/values", text(chart.get("chart"))
    elif kind in ("Application", "ApplicationSet"):
        for place, source in argo_sources(obj):
            if path := text(source.get("path")):
                yield pointer(place, "helm"), path
    elif kind is None and isinstance(obj.get("releases"), list):
        for place, entry, _ in helmfile_releases(obj):
            if entry["chart"].startswith("."):
                yield place, entry["chart"]


# Argo CD


def _argo(obj: Object) -> Iterator[Release]:
    for place, source, release in application_sources(obj):
        helm = mapping(source.get("helm"))
        values, texts = helm.get("valuesObject"), helm.get("values")
        more = ", ".join(name for name in ("valueFiles", "parameters", "fileParameters") if helm.get(name))
        if isinstance(values, dict) and values:
            yield replace(release, base=pointer(place, "helm", "valuesObject"), values=values, more=more)
        elif isinstance(texts, str):
            yield replace(release, base=pointer(place, "helm", "values"), text=texts, more=more)


def argo_sources(obj: Object) -> Iterator[tuple[str, Object]]:
    """Yield pointer and content of each source of an Application."""
    base = "/spec" if obj.get("kind") == "Application" else "/spec/template/spec"
    spec = _argo_spec(obj)
    listed = spec.get("sources")
    yield pointer(base, "source"), mapping(spec.get("source"))
    for number, each in enumerate(listed if isinstance(listed, list) else ()):
        yield pointer(base, "sources", number), mapping(each)


def _argo_spec(obj: Object) -> Object:
    spec = mapping(obj.get("spec"))
    return spec if obj.get("kind") == "Application" else mapping(mapping(spec.get("template")).get("spec"))


def application_sources(obj: Object) -> Iterator[tuple[str, Object, Release]]:
    """Yield pointer and content of each chart that an Application takes with values, and its release without them."""
    metadata, destination = mapping(obj.get("metadata")), mapping(_argo_spec(obj).get("destination"))
    for place, source in argo_sources(obj):
        helm, chart = mapping(source.get("helm")), source.get("chart")
        if helm and isinstance(chart, str):
            release = Release(
                "Argo CD", last_part(chart), version_of(source.get("targetRevision")),
                text(helm.get("releaseName")) or text(metadata.get("name")), text(destination.get("namespace")),
                metadata, "", {},
                room="an Application cannot bring a ResourceClaimTemplate into its destination beside a chart",
            )  # fmt: skip
            yield place, source, release


# k3s and RKE2


def _k3s(obj: Object) -> Iterator[Release]:
    spec, metadata = mapping(obj.get("spec")), mapping(obj.get("metadata"))
    content, chart = spec.get("valuesContent"), last_part(spec.get("chart"))
    if not isinstance(content, str):
        return
    namespace = text(spec.get("targetNamespace"))
    room = "" if namespace else "it names no targetNamespace"
    if spec.get("createNamespace") is True:
        room = f"namespace {namespace} is made by the release, so a template cannot be in it before"
    more = ", ".join(name for name in ("set", "valuesSecrets") if spec.get(name))
    yield Release(
        "k3s", chart, version_of(spec.get("version")), text(metadata.get("name")), namespace, metadata,
        "/spec/valuesContent", {}, text=content, room=room, more=more,
    )  # fmt: skip


# helmfile


def _helmfile(obj: Object) -> Iterator[Release]:
    for place, entry, release in helmfile_releases(obj):
        listed = entry.get("values")
        if not isinstance(listed, list):
            continue
        others = [str(name) for name in listed if not isinstance(name, dict)]
        others += [name for name in ("set", "valuesTemplate") if entry.get(name)]
        for index, values in enumerate(listed):
            if isinstance(values, dict):
                more = others or ["other values of the release"] * (len(listed) > 1)
                yield replace(release, base=pointer(place, "values", index), values=values, more=", ".join(more))


def helmfile_releases(obj: Object) -> Iterator[tuple[str, Object, Release]]:
    """Yield pointer and content of each release in a helmfile, and the release without its values."""
    for number, each in enumerate(obj["releases"]):
        entry = mapping(each)
        if isinstance(entry.get("chart"), str):
            release = Release(
                "helmfile", last_part(entry["chart"]), version_of(entry.get("version")), text(entry.get("name")),
                text(entry.get("namespace")), {}, "", {}, room="a helmfile cannot hold a ResourceClaimTemplate",
            )  # fmt: skip
            yield pointer("/releases", number), entry, release


def last_part(name: object) -> str:
    """Return a chart's name without repository and path."""
    return text(name).rstrip("/").rpartition("/")[2]


def mapping(value: object) -> dict[str, Any]:
    """Return `value` if it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def text(value: object) -> str:
    """Return `value` if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""
