"""Strict reading of a ConversionPolicy: everything that is wrong with it at once, each with its path and the fix."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct

from gpu2dra.devices import Device
from gpu2dra.model import Object
from gpu2dra.pointers import pointer
from gpu2dra.policy.checks import inconsistent, unreachable
from gpu2dra.policy.model import LeftAlone, Policy, PolicyError, Preemption, Problem, Rule

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"


def _meta(description: str, fix: str, **limits: Any) -> Meta:
    return Meta(description=description, extra={"fix": fix}, **limits)


_Text = Annotated[str, _meta("Any text.", "write a text, in quotes if need be")]
_Texts = Annotated[dict[str, _Text], _meta("Texts by name, for other tools.", "write a map of texts")]
_Name = Annotated[
    str,
    _meta(
        "A name of your own, as other parts of the policy say it.",
        "write at most 63 lower-case letters, digits and -, as in a DNS label",
        pattern=f"^{_LABEL}$", max_length=63,
    ),
]  # fmt: skip
_ObjectName = Annotated[
    str,
    _meta(
        "The name of an object in the cluster.", "write a DNS name (lower-case letters, digits, - and .)",
        pattern=rf"^{_LABEL}(\.{_LABEL})*$", max_length=253,
    ),
]  # fmt: skip
_ResourceGlob = Annotated[
    str,
    _meta(
        "A legacy resource name; `*` stands for any text, `?` for one letter. A device takes the place of a share "
        "(`.shared`), a fraction or a passthrough name only where it is written out.",
        "write a resource name such as nvidia.com/gpu or nvidia.com/mig-*",
        pattern="^[A-Za-z0-9*?._/-]+$", max_length=253,
    ),
]  # fmt: skip
_NamespaceGlob = Annotated[
    str,
    _meta(
        "A namespace; `*` stands for any text, `?` for one letter. A manifest that names none matches `*` only.",
        "write a namespace such as team-a or team-*", pattern="^[a-z0-9*?-]+$", max_length=63,
    ),
]  # fmt: skip
_Reason = Annotated[
    str,
    _meta(
        "Why these requests are left alone, in words for the people who are told so.",
        "write a reason of at most 80 letters", min_length=1, max_length=80,
    ),
]  # fmt: skip
_LIST = "write a list"
_FULL = "list at least one, or remove the field"
_SHOWN = 60
"""How many letters of a wrong text are shown."""


class _Part(Struct, forbid_unknown_fields=True, rename="camel", frozen=True):
    """What all parts of the document have in common. Their fields say what may stand there, and make the schema."""


class Metadata(_Part, kw_only=True, frozen=True):
    """Whose policy it is; nothing depends on it."""

    name: _ObjectName = ""
    labels: _Texts = {}
    annotations: _Texts = {}


class DeviceEntry(_Part, kw_only=True, frozen=True):
    """A device that rules can name."""

    name: _Name
    device_class_name: _ObjectName


class Match(_Part, kw_only=True, frozen=True):
    """Which requests a rule is for: those that fit one glob of each list that is given."""

    resources: Annotated[list[_ResourceGlob], _meta("Resource names, as globs.", _FULL, min_length=1)] = []
    namespaces: Annotated[list[_NamespaceGlob], _meta("Namespaces, as globs.", _FULL, min_length=1)] = []


class RuleEntry(_Part, kw_only=True, frozen=True):
    """What becomes of the requests that match: a device, or they are skipped and the reason is told."""

    name: _Name = ""
    match: Match
    device: _Name = ""
    skip: _Reason = ""


class ConversionPolicy(_Part, kw_only=True, frozen=True):
    """Which device stands for a legacy GPU request, and which requests are left alone."""

    api_version: Annotated[
        Literal["gpu2dra.dev/v1alpha1"], _meta("The version of this format.", "write gpu2dra.dev/v1alpha1")
    ]
    kind: Annotated[Literal["ConversionPolicy"], _meta("What this document is.", "write ConversionPolicy")]
    metadata: Metadata = Metadata()
    devices: Annotated[list[DeviceEntry], _meta("The devices that rules name.", _LIST)] = []
    rules: Annotated[list[RuleEntry], _meta("The first rule that matches a request decides.", _LIST)] = []
    schedulers: Annotated[
        list[_ObjectName], _meta("Schedulers that allocate claims, besides default-scheduler.", _LIST)
    ] = []
    preemption: Annotated[
        Literal["warn", "skip"],
        _meta(
            "Pods with a positive priority cannot evict others for claims: convert them with a warning, or skip them.",
            "write warn or skip",
        ),
    ] = "warn"


def load(data: object) -> Policy:
    """Return the policy in `data`, a document as plain data; its `warnings` tell what is odd in it.

    Raises PolicyError, which holds all that is wrong, when there is anything.
    """
    reader = _Reader()
    document = reader.value(data, ConversionPolicy, "") or {}
    problems = [*reader.problems, *inconsistent(document)]
    if problems:
        raise PolicyError(problems)
    devices = {entry["name"]: Device(entry["deviceClassName"]) for entry in document.get("devices", ())}
    rules = tuple(_rule(entry, devices) for entry in document.get("rules", ()))
    return Policy(
        rules, frozenset(document.get("schedulers", ())), Preemption(document.get("preemption", "warn")),
        tuple(unreachable(rules)),
    )  # fmt: skip


def described() -> Object:
    """Return what the types above say as JSON Schema; gpu2dra.policy.schema completes it."""
    return msgspec.json.schema(ConversionPolicy)


def _rule(entry: Object, devices: dict[str, Device]) -> Rule:
    match = entry["match"]
    outcome = devices[entry["device"]] if "device" in entry else LeftAlone(entry["skip"])
    return Rule(outcome, tuple(match.get("resources", ())), tuple(match.get("namespaces", ())), entry.get("name", ""))


class _Reader:
    """Holds data to the types above, value by value, so that one error hides no other; notes what is wrong."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def value(self, data: Any, kind: Any, path: str) -> Any:
        """Return what is right in `data`, with None in the place of what is not."""
        if isinstance(kind, type) and issubclass(kind, Struct):
            return self._part(data, kind, path)
        base, meta = get_args(kind)  # each type above is Annotated with the fix for what does not fit it
        if get_origin(base) is list and isinstance(data, list) and data:
            return [self.value(item, get_args(base)[0], pointer(path, index)) for index, item in enumerate(data)]
        if get_origin(base) is dict and isinstance(data, dict) and all(isinstance(key, str) for key in data):
            return {key: self.value(item, get_args(base)[1], pointer(path, key)) for key, item in data.items()}
        try:
            value = msgspec.convert(data, kind)
        except msgspec.ValidationError:
            value = None
        if value is None or (isinstance(value, str) and not value.isprintable()):  # `$` ends before a line break, too
            self._note(path, f"{_shown(data)} cannot stand here; {meta.extra['fix']}.")
            return None
        return value

    def _part(self, data: Any, kind: type[Struct], path: str) -> Object | None:
        fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
        if not isinstance(data, dict):
            self._note(path, f"{_shown(data)} cannot stand here; write a map of {', '.join(fields)}.")
            return None
        unknown = [key for key in data if key not in fields]
        for key in unknown:
            near = get_close_matches(str(key), fields, n=1)
            meant = f"{near[0]} may be meant" if near else f"the fields are {', '.join(fields)}"
            self._note(pointer(path, str(key)), f"There is no such field; {meant}.")
        for name, field in fields.items():
            if field.required and name not in data:
                fix = f"; {get_args(field.type)[1].extra['fix']}" if get_args(field.type) else ""
                self._note(pointer(path, name), f"This field is missing{fix}.")
        present = {name: field for name, field in fields.items() if name in data}
        values = {name: self.value(data[name], field.type, pointer(path, name)) for name, field in present.items()}
        return values | dict.fromkeys(map(str, unknown))

    def _note(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))


def _shown(data: Any) -> str:
    if isinstance(data, str) and data:
        text = data if len(data) <= _SHOWN else f"{data[:_SHOWN]}…"
        return f'"{text}"' if text.isprintable() else repr(text)
    if data in (None, "", [], {}):
        return "An empty value"
    kinds = {dict: "A map", list: "A list", bool: str(data).lower()}
    return kinds.get(type(data)) or str(data)
