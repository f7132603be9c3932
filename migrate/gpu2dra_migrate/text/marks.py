"""Places that libyaml gets wrong or keeps to itself: the ends of block scalars, and where an error is."""

from __future__ import annotations

from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

from gpu2dra_migrate.errors import YamlSyntaxError


def block_scalar_end(text: str, start: int, end: int) -> int:
    """Return where the content of a block scalar ends, its trailing blank lines and last line break left out.

    With `+` the blank lines are content. A blank line longer than the indentation is content as well.
    """
    header_end = text.find("\n", start, end)
    if header_end < 0:
        return end
    if "+" in text[start:header_end].partition(" #")[0]:
        return end - len(
            "\r\n" if text.endswith("\r\n", start, end) else "\n" if text.endswith("\n", start, end) else ""
        )
    lines = text[header_end + 1 : end].split("\n")
    indent = next((len(line) - len(line.lstrip(" ")) for line in lines if line.strip()), end)
    position = header_end + 1 + sum(len(line) + 1 for line in lines) - 1
    while lines and not lines[-1].strip() and len(lines[-1].rstrip("\r")) <= indent:
        position -= len(lines.pop()) + 1
    return position - 1 if text[position - 1 : position] == "\r" else position


def syntax_error(error: YAMLError | UnicodeError, text: str) -> YamlSyntaxError:
    """Return the error to raise for what the parser says about `text`."""
    if isinstance(error, MarkedYAMLError):
        mark = error.problem_mark or error.context_mark
        problem = str(error.problem or error.context or "not YAML")
        return YamlSyntaxError(mark.line + 1 if mark else 1, mark.column + 1 if mark else 1, problem)
    if isinstance(error, ReaderError):
        offset, problem = text.find(chr(error.character)), str(error.reason)
    elif isinstance(error, UnicodeEncodeError):
        offset, problem = error.start, "a lone surrogate is no character"
    else:
        offset, problem = 0, str(error)
    before = text[: max(offset, 0)]
    return YamlSyntaxError(before.count("\n") + 1, len(before) - before.rfind("\n"), problem)
