"""What stands where in a template, as far as its lines tell without rendering: workload, container, request.

Meant for templates of few patterns: what is written in another way is refused with a reason.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

VALUE = r"\$?\.Values(?:\.\w+)+"
ACTION = re.compile(r"\{\{-?\s*(?P<word>if|with|range|define|block|else|end)\b")
_KIND = re.compile(r"kind:\s*(?P<kind>Pod|Deployment|StatefulSet|DaemonSet|ReplicaSet|Job|CronJob)\s*")
_KEY = re.compile(
    rf" +[\"']?nvidia\.com/gpu[\"']?:\s*(?:\{{\{{-?\s*(?P<value>{VALUE})(?P<more>[^{{}}]*)\}}\}}"
    r"|[\"']?(?P<number>\d+)[\"']?)\s*(?:#.*)?"
)
WHOLE = re.compile(rf"\{{\{{-?\s*toYaml\s+(?P<value>{VALUE}|\.)\s*\|\s*n?indent\s+\d+\s*-?\}}\}}")
WITH = re.compile(rf"\s*\{{\{{-?\s*with\s+(?P<value>{VALUE})\s*-?\}}\}}\s*")
NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?|\{\{-?\s*(?P<field>\$?\.[A-Za-z.]+)\s*-?\}\}")
_FORBIDDEN = (
    (r"\{\{-?\s*(?:define|block)\b", "it holds definitions"),
    (r"\bresourceClaims\b|\bclaims:", "it makes claims already"),
    (r"helm\.sh/hook|argocd\.argoproj\.io/(?:hook|sync-wave)", "it is a hook, or has its place in an order"),
    (r"\r", "its lines end in CRLF"),
)


class Refused(Exception):
    """The template is of no pattern that is known; the text says why."""


@dataclass(frozen=True, slots=True)
class Ask:
    """How the container asks: `value` gives the amount or the whole map; `lines` are those with the request."""

    value: str
    lines: tuple[int, ...]
    whole: bool


class Lines:
    """The lines of one template, counted from 0. All methods raise Refused for what they do not find."""

    def __init__(self, text: str) -> None:
        for pattern, why in _FORBIDDEN:
            if re.search(pattern, text):
                raise Refused(why)
        self.lines = text.split("\n")

    def start(self) -> int:
        """Return the line in which the only document begins."""
        found = {
            key: [n for n, line in enumerate(self.lines) if line.startswith(f"{key}:")]
            for key in ("apiVersion", "kind")
        }
        if any(len(numbers) != 1 for numbers in found.values()):
            raise Refused("it holds several documents, or none that begins at the margin")
        if not _KIND.fullmatch(self.lines[found["kind"][0]]):
            raise Refused("its kind is none of Kubernetes' own workloads")
        return min(numbers[0] for numbers in found.values())

    def metadata(self, key: str) -> str:
        """Return the text of a field of the metadata, or nothing; raise Refused for one that is quoted."""
        begin = next((n for n, line in enumerate(self.lines) if re.fullmatch(r"metadata:\s*", line)), None)
        for line in self.lines[begin + 1 :] if begin is not None else ():
            if line and not line.startswith((" ", "{{")):
                break
            if match := re.fullmatch(rf"  {key}:\s+(?P<text>[^\"'#\s].*?)\s*(?:\s#.*)?", line):
                return match["text"]
        if key == "name":
            raise Refused("its name is not written in a line of its own, without quotes")
        return ""

    def ask(self) -> Ask:
        """Return how the only container that asks does so."""
        keys = {n: match for n, line in enumerate(self.lines) if (match := _KEY.fullmatch(line))}
        mentions = [
            n for n, line in enumerate(self.lines) if "nvidia.com/" in line and not line.lstrip().startswith("#")
        ]
        if sorted(keys) != mentions:
            raise Refused("a resource is named in a way that is not written inline")
        if keys:
            values = {match["number"] or f"{rooted(match['value'])}" for match in keys.values()}
            if len(values) > 1 or any(
                (match["more"] or "").strip() not in ("", "| quote", "| int", "-") for match in keys.values()
            ):
                raise Refused("the amount is computed, or limits and requests differ")
            return Ask(values.pop(), tuple(sorted(keys)), whole=False)
        whole = [
            (n, at, match) for n, line in enumerate(self.lines) if re.match(r" *(?:- )?resources:", line)
            for at in (n, n + 1) if at < len(self.lines) and (match := WHOLE.search(self.lines[at]))
        ]  # fmt: skip
        if len(whole) != 1:
            raise Refused("not exactly one container takes its resources from the values as a whole")
        number, at, match = whole[0]
        value = match["value"]
        if value == ".":
            outer = WITH.fullmatch(self.lines[number - 1]) if number else None
            if not outer:
                raise Refused("its resources come from somewhere else than the values")
            value = outer["value"]
        return Ask(rooted(value), tuple(dict.fromkeys((number, at))), whole=True)

    def parent(self, number: int, keys: str) -> int:
        """Return the line of the block around a line, whose key has to be one of `keys`."""
        own = indent(self.lines[number])
        item = self.lines[number].lstrip().startswith("- ")
        for line_number in range(number - 1, -1, -1):
            line = self.lines[line_number]
            same = indent(line) == own and item and not line.lstrip().startswith("- ")  # a list at its key's margin
            if line.strip() and not line.lstrip().startswith(("#", "{{")) and (indent(line) < own or same):
                if re.fullmatch(rf" *(?:- )?(?:{keys}):\s*(?:#.*)?", line):
                    return line_number
                break
        raise Refused(f"its {keys.replace('|', ' or ')} are not in block style")

    def container(self, number: int) -> tuple[int, str]:
        """Return the line in which the container begins that has `resources` in line `number`, and its name."""
        depth = indent(self.lines[number]) + 2 * self.lines[number].lstrip().startswith("- ")
        for begin in range(number, -1, -1):
            item = re.match(r"( *)- +", self.lines[begin])
            if item and len(item[0]) == depth:
                break
        else:
            raise Refused("its containers are not in block style")
        for n, line in enumerate(self.lines[begin:], start=begin):
            if n > begin and line.strip() and not line.lstrip().startswith("{{") and indent(line) < depth:
                break
            match = re.fullmatch(r" *(?:- +)?name:\s*(?P<text>\S.*?)\s*", line)
            if match and depth == line.index("name:"):
                if NAME.fullmatch(match["text"]):
                    return begin, match["text"]
                break
        raise Refused("the container has no plain name")

    def blocks(self, number: int) -> list[str]:
        """Return the words of the actions that are open where a line begins."""
        open_: list[str] = []
        for line in self.lines[:number]:
            for match in ACTION.finditer(line):
                if match["word"] == "end":
                    del open_[-1:]
                elif match["word"] != "else":
                    open_.append(match["word"])
        return open_

    def end(self, number: int) -> int:
        """Return the line behind the block that line `number` opens."""
        depth = indent(self.lines[number])
        end = number + 1
        for n in range(number + 1, len(self.lines)):
            line = self.lines[n]
            if line.strip() and not line.lstrip().startswith("#"):
                if indent(line) <= depth:
                    break
                end = n + 1
        return end

    def first_child(self, number: int) -> int:
        """Return the first line of the block that line `number` opens."""
        return next(n for n in range(number + 1, len(self.lines)) if self.lines[n].strip())


def indent(line: str) -> int:
    """Return how many blanks a line begins with."""
    return len(line) - len(line.lstrip(" "))


def rooted(value: str) -> str:
    """Return a value such that it means the same wherever it stands: `.Values.x` becomes `$.Values.x`."""
    return value if value.startswith("$") else f"${value}"
