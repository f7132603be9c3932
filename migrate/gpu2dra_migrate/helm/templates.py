"""What can be told about a template without rendering it: definitions, includes, kinds, and functions that vary."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

from gpu2dra.kinds import KINDS
from gpu2dra_migrate.search.discover import may_hold_legacy

_STRING = r'"(?:\\.|[^"\\\n])*"' + r"|`[^`]*`|'(?:\\.|[^'\\\n])*'"
_COMMENT = re.compile(r"\{\{(?:- )?/\*.*?\*/(?: -)?\}\}", re.DOTALL)
_ACTION = re.compile(rf"\{{\{{(?:{_STRING}|[^\"`'}}]|\}}(?!\}}))*\}}\}}")
_DEFINE = re.compile(r"""\{\{-?\s*(?:define|block)\s+(?:"([^"]+)"|`([^`]+)`)""")
_INCLUDE = re.compile(r"""\b(?:include|template|block)\s+(?:"([^"]+)"|`([^`]+)`)""")
_KIND = re.compile(
    rf"^[ \t]*[\"']?kind[\"']?:[ \t]*[\"']?(?:{'|'.join(sorted({kind for _, kind in KINDS}))})\b", re.MULTILINE
)

# What stands for each function whose result differs from render to render (sprig's crypto, random and date functions).
# Each takes the same arguments and gives a value of the same type, so that pipelines go on working.
_CONSTANTS = {
    **dict.fromkeys(("randAlphaNum", "randAlpha", "randAscii", "randBytes"), 'printf "random%v"'),
    "randNumeric": 'printf "1%v"',
    "randInt": "max",
    "shuffle": "print",
    "uuidv4": '"00000000-0000-4000-8000-000000000000"',
    "now": '(toDate "2006-01-02" "2020-01-01")',
    "bcrypt": 'printf "hash-of-%v"',
    "htpasswd": 'printf "%v:%v"',
    "encryptAES": 'printf "%v-%v"',
    "genPrivateKey": 'printf "key-of-%v"',
    **dict.fromkeys(
        ("genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert",
         "genSignedCertWithKey", "buildCustomCert"),
        'dict "Cert" "certificate" "Key" "key"',
    ),
}  # fmt: skip
# What stands for functions that end a render where a value is missing: the message is the value, or nothing happens.
_DEMANDS = {"required": "default", "fail": 'printf "%.0s"'}
_TPL = re.compile(r"\{\{[^}]*\btpl\s[^}]*\.Values\b")
_WHOLE_VALUES = re.compile(r"(?<!index )(?<!hasKey )(?<!get )\.Values(?![.\w])")
_WORD = re.compile(rf"{_STRING}|(?<![\w.$])(?P<name>{'|'.join((*_CONSTANTS, *_DEMANDS))})(?!\w)")


def stabilised(text: str, *, lenient: bool = False) -> str:
    """Return a template that renders the same each time: random values, times and keys in it are constants.

    A `lenient` one demands no values either.
    """
    constants = _CONSTANTS | _DEMANDS if lenient else _CONSTANTS
    return _ACTION.sub(lambda action: _WORD.sub(lambda word: constants.get(word["name"], word[0]), action[0]), text)


def defined(text: str) -> list[str]:
    """Return the names that a template defines, in order."""
    return [one or other for one, other in _DEFINE.findall(_uncommented(text))]


def included(text: str) -> set[str]:
    """Return the names that a template includes, as far as they are written out."""
    return {one or other for one, other in _INCLUDE.findall(_uncommented(text))}


def mentions_request(name: str, texts: Mapping[str, str]) -> bool:
    """Whether the template `name` of `texts` is one for a workload that may ask for a GPU.

    It names a kind that holds PodSpecs, and a legacy resource stands in it or in a definition that it includes.
    """
    return _KIND.search(texts[name]) is not None and any(may_hold_legacy(text) for text in _reached(name, texts))


def takes_resources(name: str, texts: Mapping[str, str], keys: Iterable[str]) -> bool:
    """Whether the template `name` of `texts` may give a workload the resources that values hold at `keys`.

    It names a kind that holds PodSpecs, and `resources` stands in what it reaches, or it takes whole texts from values
    (`tpl`). One of the keys, if any, stands there as well.
    """
    reached = "\n".join(_reached(name, texts))
    words = [re.escape(key) for key in keys]
    if words and not re.search(rf"\b(?:{'|'.join(words)})\b", reached):
        return False
    return (_KIND.search(texts[name]) is not None and "resources" in reached) or _TPL.search(reached) is not None


def prints_values(text: str) -> bool:
    """Whether a template may print all values of its chart: it takes `.Values` for other things than to look into."""
    return any(_WHOLE_VALUES.search(action) for action in _ACTION.findall(_uncommented(text)))


def _reached(name: str, texts: Mapping[str, str]) -> Iterator[str]:
    """Yield the text of a template and of each definition that it includes, directly or not."""
    bodies = dict(_bodies(texts.values()))
    waiting, seen = [texts[name]], set[str]()
    while waiting:
        text = waiting.pop()
        yield text
        new = included(text) - seen
        seen |= new
        waiting += [bodies[each] for each in new if each in bodies]


def _bodies(texts: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield name and text of each definition; the text runs to the next one, which is more than its own."""
    for text in map(_uncommented, texts):
        for match, following in pairwise([*_DEFINE.finditer(text), None]):
            assert match is not None  # noqa: S101 - the only None stands last
            yield match[1] or match[2], text[match.start() : following.start() if following else len(text)]


def _uncommented(text: str) -> str:
    return _COMMENT.sub("", text)
