"""Claims written into a template itself, for the patterns in which nearly all charts ask: `--helm-style inline`.

A template with one workload, of which one container asks: by a literal key with a value, or by a map of resources that
comes from the values as a whole. Everything else is refused, and the square judges what is left.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from importlib import resources

from gpu2dra import ApiVersion, Options
from gpu2dra.devices import GPU_CLASS
from gpu2dra.names import DIGEST_LENGTH
from gpu2dra_migrate.helm.helper import target_of
from gpu2dra_migrate.helm.lines import ACTION, NAME, WHOLE, WITH, Lines, Refused, indent, rooted

__all__ = ["Refused", "inline", "is_inline", "partial"]

_DONE = re.compile(r'include "gpu2dra\.[0-9a-f]{8}\.gpus"')


def is_inline(text: str) -> bool:
    """Whether a template has been written inline before."""
    return _DONE.search(text) is not None


def partial(options: Options) -> str:
    """Return the definitions that inline templates use, for the target in `options`."""
    text = resources.files(__package__).joinpath("inline.tpl").read_text("utf-8")
    text = text.replace("@minimum@", target_of(options).rstrip("+")).replace("@class@", GPU_CLASS)
    return text.replace("@version@", hashlib.sha256(text.encode()).hexdigest()[:DIGEST_LENGTH])


def inline(text: str, options: Options) -> str:
    """Return the template `text` with claims in it where the switch is on; raise Refused where it is none of ours."""
    return _Template(text, partial(options), options).rewritten()


class _Template(Lines):
    """One template, and the changes to its lines by number: texts that stand in their place."""

    def __init__(self, text: str, definitions: str, options: Options) -> None:
        super().__init__(text)
        self._options = options
        version = re.search(r'define "(gpu2dra\.[0-9a-f]+)\.', definitions)
        assert version is not None  # noqa: S101 - the file in the package has definitions
        self._prefix = version[1]
        self._changes: dict[int, list[str]] = {}

    def rewritten(self) -> str:
        """Return the new text."""
        top = self.start()
        ask = self.ask()
        resources_line = (
            ask.lines[0] if ask.whole else self.parent(self.parent(ask.lines[0], "limits|requests"), "resources")
        )
        item, request = self.container(resources_line)
        pod = self.parent(item, "containers")
        outside = self.blocks(top)
        own = [*outside, "with"] if ask.whole and WITH.fullmatch(self.lines[resources_line - 1]) else outside
        if self.blocks(resources_line) != own or self.blocks(pod) != outside:
            raise Refused("what asks stands in a condition of its own")
        name = self.metadata("name") + f'-gpu-{{{{ include "{self._prefix}.digest" (list $ $gpus) }}}}'
        if ask.whole:
            self._take_whole(ask.lines[-1], request)
        else:
            self._take_key(ask.lines, resources_line, request)
        self._claim(pod, name)
        self._template(top, ask.value, name, request)
        return "\n".join(line for number, old in enumerate(self.lines) for line in self._changes.get(number, [old]))

    def _take_whole(self, number: int, request: str) -> None:
        match = WHOLE.search(self.lines[number])
        assert match is not None  # noqa: S101 - it was found there
        field = NAME.fullmatch(request)
        name = rooted(field["field"]) if field and field["field"] else f'"{request}"'
        new = f'include "{self._prefix}.resources" (list $gpus {match["value"]} {name})'
        self._changes[number] = [re.sub(r"toYaml\s+\S+", lambda _: new, self.lines[number], count=1)]

    def _take_key(self, lines: Sequence[int], resources_line: int, request: str) -> None:
        end = self.end(resources_line)
        if any(ACTION.search(line) for line in self.lines[resources_line:end]):
            raise Refused("its resources have conditions")
        for number in lines:
            section = self.parent(number, "limits|requests")
            alone = len([line for line in self.lines[section + 1 : self.end(section)] if line.strip()]) == 1
            first = section if alone else number
            pad = " " * indent(self.lines[first])
            self._changes[first] = [f"{pad}{{{{- if not $gpus }}}}", self.lines[first]]
            self._changes[number] = [*self._changes.get(number, [self.lines[number]]), f"{pad}{{{{- end }}}}"]
        pad = " " * indent(self.lines[self.first_child(resources_line)])
        claims = [
            f"{pad}{{{{- if $gpus }}}}",
            f"{pad}claims:",
            f"{pad}- name: gpu",
            f"{pad}  request: {request}",
            f"{pad}{{{{- end }}}}",
        ]
        self._changes[end - 1] = [*self._changes.get(end - 1, [self.lines[end - 1]]), *claims]

    def _claim(self, pod: int, name: str) -> None:
        """Put the claim of the pod before its containers, and the toleration where it belongs."""
        pad = " " * indent(self.lines[pod])
        new = [f"{pad}resourceClaims:", f"{pad}- name: gpu", f"{pad}  resourceClaimTemplateName: {name}"]
        found = [n for n, line in enumerate(self.lines) if re.match(r" *tolerations:", line)]
        if not self._options.tolerations:
            pass
        elif not found:
            new += [
                f"{pad}tolerations:",
                f"{pad}- key: nvidia.com/gpu",
                f"{pad}  operator: Exists",
                f"{pad}  effect: NoSchedule",
            ]
        else:
            above = WITH.fullmatch(self.lines[found[0] - 1])
            below = WHOLE.search(" ".join(self.lines[found[0] : found[0] + 2]))
            if len(found) > 1 or not above or not below or below["value"] != ".":
                raise Refused("its tolerations do not come from the values as a whole")
            value = above["value"]
            more = f'(include "{self._prefix}.tolerations" (list $gpus {value}) | fromJsonArray)'
            line = self.lines[found[0] - 1].replace(f"with {value}", f"with concat (default list {value}) {more}")
            self._changes[found[0] - 1] = [line]
        self._changes[pod] = [f"{pad}{{{{- if $gpus }}}}", *new, f"{pad}{{{{- end }}}}", self.lines[pod]]

    def _template(self, top: int, value: str, name: str, request: str) -> None:
        """Put the ResourceClaimTemplate before the workload."""
        version = self._options.api_version
        device = [
            f'deviceClassName: {{{{ include "{self._prefix}.class" $ }}}}',
            "allocationMode: ExactCount",
            "count: {{ $gpus }}",
        ]
        device = (
            [f"  {line}" for line in device]
            if version is ApiVersion.V1BETA1
            else ["  exactly:", *(f"    {line}" for line in device)]
        )
        namespace = self.metadata("namespace")
        self._changes[top] = [
            f'{{{{ $gpus := include "{self._prefix}.gpus" (list $ {value}) -}}}}',
            "{{ if $gpus -}}",
            f"apiVersion: {version}",
            "kind: ResourceClaimTemplate",
            "metadata:",
            f"  name: {name}",
            *([f"  namespace: {namespace}"] if namespace else []),
            "  annotations:",
            "    helm.sh/resource-policy: keep",
            "spec:",
            "  spec:",
            "    devices:",
            "      requests:",
            f"      - name: {request}",
            *(f"      {line}" for line in device),
            "---",
            "{{ end -}}",
            *self._changes.get(top, [self.lines[top]]),
        ]
