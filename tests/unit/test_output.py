"""What a run tells: exit codes, the summary, lines that cannot steer a terminal, JSON, and diffs that git applies."""

from __future__ import annotations

import io
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpu2dra import CODES, Finding, Severity
from gpu2dra.codes import finding
from gpu2dra_migrate.differences import diff_of, lines_of
from gpu2dra_migrate.manifest import Located
from gpu2dra_migrate.output import Exit, Tally, json_text, line_of
from gpu2dra_migrate.runner import FileResult, Mode
from gpu2dra_migrate.terminal import Terminal, prepare_streams, printable


def located(code: str, *, message: str = "A message.", about: str = "Pod/a") -> Located:
    return Located(finding(code, "/spec", message), 3, 5, about)


def tally_of(mode: Mode, *codes: str, changed: bool = False) -> Tally:
    tally = Tally(mode)
    tally.add(FileResult(Path("a.yaml"), [located(code) for code in codes], changed=changed, objects=int(changed)))
    return tally


KINDS = {"nothing": (), "note": ("DRA101",), "warning": ("DRA401",), "error": ("DRA501",), "bug": ("DRA599",)}


@pytest.mark.parametrize("mode", list(Mode))
@pytest.mark.parametrize("changed", [False, True])
@pytest.mark.parametrize("present", list(itertools.product([False, True], repeat=4)))
def test_exit_codes(mode: Mode, changed: bool, present: tuple[bool, ...]) -> None:
    kinds = [kind for kind, there in zip(("note", "warning", "error", "bug"), present, strict=True) if there]
    codes = [code for kind in kinds for code in KINDS[kind]]
    if changed:
        codes.append("DRA001")
    expected = (
        2 if "bug" in kinds
        else 3 if "error" in kinds
        else 1 if changed or ("warning" in kinds and mode is not Mode.CONVERT)
        else 0
    )  # fmt: skip
    assert int(tally_of(mode, *codes, changed=changed).exit_code()) == expected


def test_sums_over_files_are_the_worst_of_them() -> None:
    tally = tally_of(Mode.CHECK)
    for codes in (("DRA401",), ("DRA501",), ("DRA101",)):
        tally.add(FileResult(Path("b"), [located(code) for code in codes]))
    assert tally.exit_code() is Exit.UNREADABLE


@pytest.mark.parametrize(
    ("mode", "codes", "changed", "words"),
    [
        (Mode.CHECK, (), False, ["0 requests in 0 objects to convert; 0 files would change, 1 looked at."]),
        (Mode.CONVERT, ("DRA001",), True, ["in 1 object converted; 1 file changed, 1 looked at."]),
        (Mode.CHECK, ("DRA001",), True, ["1 file would change", "`gpu2dra convert` makes them"]),
        (Mode.CHECK, ("DRA401", "DRA401", "DRA402"), False,
         ["3 left for you: 2 × DRA401 unknown-kind, 1 × DRA402 custom-resource-field.", "explain CODE"]),
        (Mode.CHECK, ("DRA501",), False, ["1 could not be read or converted: 1 × DRA501 broken-yaml."]),
        (Mode.CHECK, ("DRA101",), False, ["1 note (1 × DRA101 zero-kept; -v tells them), 0 ignored by comments."]),
    ],
)  # fmt: skip
def test_summary(mode: Mode, codes: tuple[str, ...], changed: bool, words: list[str]) -> None:
    text = "\n".join(tally_of(mode, *codes, changed=changed).sentences())
    assert [word for word in words if word not in text] == [], text


def test_summary_counts_what_comments_ignore() -> None:
    tally = Tally(Mode.CHECK)
    tally.add(FileResult(Path("a"), ignored=2))
    assert "2 ignored by comments." in "\n".join(tally.sentences())


HOSTILE = "a\x1b[31m\x07\r\nb\u202e\x9b\udcff"


def test_nothing_in_a_manifest_steers_the_terminal() -> None:
    terminal = Terminal(color=False, progress=False)
    result = FileResult(Path(f"{HOSTILE}.yaml"))
    line = line_of(result, located("DRA001", message=HOSTILE, about=HOSTILE), terminal)
    assert line.isprintable()
    assert line.count("a\N{REPLACEMENT CHARACTER}[31m") == 3
    assert ":3:5: warning DRA001 " in line


def test_a_finding_about_the_whole_file_has_no_line() -> None:
    line = line_of(
        FileResult(Path("a.yaml")),
        Located(finding("DRA510", "", "Gone."), 0, 0, ""),
        Terminal(color=False, progress=False),
    )
    assert line == "a.yaml: error DRA510 Gone."


@pytest.mark.parametrize(("text", "expected"), [("plain ü × \U0001f600", True), (HOSTILE, False), ("tab\t", False)])
def test_printable(text: str, expected: bool) -> None:
    assert (printable(text) == text) is expected
    assert printable(text).isprintable()


class Pipe(io.StringIO):
    """A stream whose reader has gone."""

    def write(self, text: str) -> int:
        """Fail, as a closed pipe does."""
        raise BrokenPipeError(text)

    def fileno(self) -> int:
        """Return a descriptor that may be replaced."""
        return os.open(os.devnull, os.O_WRONLY)


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        """Say yes."""
        return True


def test_a_reader_that_has_gone_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal(color=False, progress=False)
    monkeypatch.setattr(sys, "stdout", Pipe())
    terminal.line("x")
    assert terminal.gone


@pytest.mark.parametrize(
    ("color", "stream", "expected"), [(True, Screen, True), (False, Screen, False), (True, io.StringIO, False)]
)
def test_colors_only_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, color: bool, stream: type[io.StringIO], expected: bool
) -> None:
    monkeypatch.setattr(sys, "stdout", stream())
    styled = Terminal(color=color, progress=False).style("x", "red", bold=True)
    assert (styled == "x") is not expected
    assert ("\x1b[" in styled) is expected


def test_progress_shows_after_a_moment_and_goes_before_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    screen, out, now = Screen(), io.StringIO(), [0.0]
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(sys, "stdout", out)
    terminal = Terminal(color=False, progress=True, clock=lambda: now[0])
    terminal.advance()
    assert screen.getvalue() == ""
    now[0] = 1.0
    terminal.advance()
    terminal.advance()
    assert screen.getvalue() == "\r\x1b[2K2 files looked at"
    terminal.line("found")
    assert screen.getvalue().endswith("\r\x1b[2K")
    assert out.getvalue() == "found\n"


@pytest.mark.parametrize(("progress", "stream"), [(False, Screen), (True, io.StringIO)])
def test_no_progress_elsewhere(monkeypatch: pytest.MonkeyPatch, progress: bool, stream: type[io.StringIO]) -> None:
    screen, now = stream(), [0.0]
    monkeypatch.setattr(sys, "stderr", screen)
    terminal = Terminal(color=False, progress=progress, clock=lambda: now[0])
    now[0] = 9.0
    terminal.advance()
    assert screen.getvalue() == ""


def test_streams_that_are_closed_swallow(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    prepare_streams()
    print("x")  # must not raise
    assert sys.stdin.read() == ""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        stream.close()


def test_json_is_stable() -> None:
    tally = tally_of(Mode.CHECK, "DRA001", changed=True)
    result = FileResult(
        Path("ü\udcff.yaml"), [located("DRA001", message="2 × gpu")], changed=True, created={Path("t.yaml"): ""},
        moved=Path("m.yaml"),
    )  # fmt: skip
    text = json_text([result, FileResult(Path("b.yaml"))], tally)
    assert text.isascii()
    document = json.loads(text)
    assert set(document) == {"schemaVersion", "mode", "summary", "files"}
    assert (document["schemaVersion"], document["mode"]) == (1, "check")
    assert document["summary"] == {
        "files": 1, "changed": 1, "objects": 1, "requests": 0, "ignored": 0, "codes": {"DRA001": 1}, "exitCode": 1,
    }  # fmt: skip
    assert document["files"] == [
        {
            "path": "ü\udcff.yaml", "changed": True, "created": ["t.yaml"], "moved": "m.yaml",
            "findings": [
                {
                    "code": "DRA001", "name": "legacy-request", "severity": "warning", "line": 3, "column": 5,
                    "object": "Pod/a", "path": "/spec", "message": "2 × gpu", "todo": CODES["DRA001"].todo,
                }
            ],
        },
        {"path": "b.yaml", "changed": False, "created": [], "moved": None, "findings": []},
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "\n", "a", "a\n", "a\r\nb", "a\n\nb\n", "a\rb\x0cc\u2028d\n"])
def test_lines_end_at_line_feeds_only(text: str) -> None:
    lines = lines_of(text)
    assert "".join(lines) == text
    assert len(lines) == text.count("\n") + (not text.endswith("\n") and text != "")


@pytest.mark.parametrize(
    "name", ["a.yaml", "with blank.yaml", 'q"uote.yaml', "back\\slash.yaml", "new\nline.yaml", "ünï.yaml"]
)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a: 1\nb: 2\n", "a: 1\nb: 3\n"), ("a: 1", "a: 2"), ("a: 1\r\nb: 2\r\n", "a: 1\r\nc: 3\r\nb: 2\r\n"),
        ("\ufeffa: \x1b[31m\n", "\ufeffb: \x1b[31m\n"), ("a", "a\n"), ("a\n", "a"), ("a\x0cb\n", "c\n"),
    ],
)  # fmt: skip
def test_git_applies_the_diff(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, before: str, after: str
) -> None:
    monkeypatch.chdir(tmp_path)
    path, new = Path(name), Path(f"new-{name}")
    path.write_bytes(before.encode())
    result = FileResult(path, changed=True, before=before, after=after, created={new: "x: 1\n"})
    diff = "".join(diff_of(result)).encode()
    done = subprocess.run(["git", "apply", "--whitespace=nowarn", "-"], input=diff, capture_output=True, check=False)
    assert done.returncode == 0, (done.stderr, diff)
    assert path.read_bytes() == after.encode()
    assert new.read_text() == "x: 1\n"


@pytest.mark.parametrize("name", ["a.yaml", "with blank.yaml", 'q"uote.yaml', "new\nline.yaml", "ünï.yaml"])
def test_git_applies_a_diff_in_which_files_move(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The text that takes the place of a moved file, a new file and an ordinary change behind it included."""
    monkeypatch.chdir(tmp_path)
    path, moved, new, other = Path(name), Path(f"_{name}"), Path("templates") / f"new {name}", Path(f"z-{name}")
    path.write_bytes(b"old: 1\r\nlast")
    other.write_text("a: 1\n")
    results = [
        FileResult(path, changed=True, moved=moved, after="{{ one line }}\n"),
        FileResult(new, changed=True, after="new\n"),
        FileResult(other, changed=True, before="a: 1\n", after="a: 2\n"),
    ]
    diff = "".join(line for result in results for line in diff_of(result))
    assert "similarity index 100%\n" in diff
    done = subprocess.run(["git", "apply", "-"], input=diff.encode(), capture_output=True, check=False)
    assert done.returncode == 0, (done.stderr, diff)
    found = {file.relative_to(tmp_path): file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    assert found == {
        moved: b"old: 1\r\nlast", path: b"{{ one line }}\n", new: b"new\n", other: b"a: 2\n"
    }  # fmt: skip


def test_a_file_that_only_moves_is_a_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "".join(diff_of(FileResult(Path("a b"), changed=True, moved=Path("c")))) == (
        "diff --git a/a b b/c\nsimilarity index 100%\nrename from a b\nrename to c\n"
    )


def test_names_in_a_diff_are_seen_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    heads = [
        next(diff_of(FileResult(path, before="a", after="b")))
        for path in (Path("x"), tmp_path / "sub/x", tmp_path / "x")
    ]
    assert heads == ["--- a/x\n", "--- a/x\n", f"--- a{tmp_path / 'x'}\n"]


def test_severities_are_those_of_the_table() -> None:
    assert Finding("DRA501", "", "", Severity.ERROR).severity is CODES["DRA501"].severity
