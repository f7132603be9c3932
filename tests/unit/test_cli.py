"""The command as its user meets it: arguments, exit codes, standard input, streams that close, signals."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from gpu2dra import CODES
from gpu2dra_migrate import __version__
from gpu2dra_migrate.cli import cli

if TYPE_CHECKING:
    from collections.abc import Callable

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: one
spec:
  containers:
  - name: a
    resources:
      limits:
        nvidia.com/gpu: 2
"""
PLAIN = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: plain}\n"
REPORTED = "apiVersion: example.com/v1\nkind: Unknown\nspec: {limits: {nvidia.com/gpu: 1}}\n"
NOTED = POD.replace("gpu: 2", "gpu: 0")
BROKEN = "nvidia.com/gpu: [\n"
JSON = json.dumps(
    {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"},
        "spec": {"containers": [{"name": "a", "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
    },
    indent=2,
)  # fmt: skip
CONFIG = "apiVersion: gpu2dra.dev/v1alpha1\nkind: Config\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "GPU2DRA_DEBUG", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def gpu2dra(root: Path, here: Path) -> Callable[..., subprocess.CompletedProcess[bytes]]:
    """Return a function that runs the command in a process of its own."""

    def run(*arguments: str, stdin: bytes = b"", **more: Any) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, **pythonpath(root), **more.pop("env", {})}
        streams = {"capture_output": True} if "stdout" not in more else {"stderr": subprocess.PIPE}
        command = [sys.executable, "-m", "gpu2dra_migrate", *arguments]
        return subprocess.run(
            command, cwd=here, input=stdin, env=environment, check=False, timeout=60, **{**streams, **more}
        )

    return run


def pythonpath(root: Path) -> dict[str, str]:
    return {"PYTHONPATH": f"{root}{os.pathsep}{root / 'migrate'}"}


def call(*arguments: str, stdin: str | bytes = "") -> Result:
    return CliRunner().invoke(cli, arguments, input=stdin)


def files(folder: Path, **texts: str) -> None:
    for name, text in texts.items():
        (folder / f"{name}.yaml").write_text(text)


@pytest.mark.parametrize(
    "arguments", [("check", "."), ("check",), (), (".",), ("./a.yaml",), ("--target", "1.34+"), ("-v",)]
)
def test_check_is_the_default_and_here_is_the_place(here: Path, arguments: tuple[str, ...]) -> None:
    files(here, a=POD)
    result = call(*arguments)
    assert result.exit_code == 1
    assert "a.yaml:10:9: warning DRA001 Pod/one: " in result.stdout
    assert (here / "a.yaml").read_text() == POD


def test_a_folder_with_the_name_of_a_command(here: Path) -> None:
    (here / "convert").mkdir()
    files(here / "convert", a=POD)
    assert call("./convert").exit_code == 1
    assert call("check", "convert").exit_code == 1
    assert (here / "convert" / "a.yaml").read_text() == POD


def test_an_option_that_does_not_exist(here: Path) -> None:
    result = call("--nonsense")
    assert result.exit_code == 2
    assert "--nonsense" in result.stderr


@pytest.mark.parametrize(
    ("names", "check", "diff", "convert"),
    [
        ("plain", 0, 0, 0), ("noted", 0, 0, 0), ("pod", 1, 1, 1), ("reported", 1, 1, 0), ("broken", 3, 3, 3),
        ("pod broken", 3, 3, 3), ("pod reported noted", 1, 1, 1), ("reported broken", 3, 3, 3), ("missing", 3, 3, 3),
        ("pod missing", 3, 3, 3), ("plain noted", 0, 0, 0), ("ignored", 0, 0, 0), ("", 0, 0, 0),
    ],
)  # fmt: skip
def test_exit_codes(here: Path, names: str, check: int, diff: int, convert: int) -> None:
    ignored = POD.replace("gpu: 2", "gpu: 2 # gpu2dra: ignore[DRA001] later")
    files(here, plain=PLAIN, noted=NOTED, pod=POD, reported=REPORTED, broken=BROKEN, ignored=ignored)
    paths = [f"{name}.yaml" for name in names.split()] or [str(here / "empty")]
    (here / "empty").mkdir()
    for command, expected in (("check", check), ("diff", diff), ("convert", convert)):
        for more in ((), ("--quiet",), ("--output", "json"), ("-v", "--no-color")):
            if command == "convert":
                files(here, pod=POD)
            assert call(command, *paths, *more).exit_code == expected, (command, more)
    if "pod" in names:
        assert "ResourceClaimTemplate" in (here / "pod.yaml").read_text()  # the others are still done


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("check", "-", "a.yaml"), "standard input"), (("check", "--target", "1.20"), "1.32"),
        (("check", "--target", "x"), "no Kubernetes version"), (("check", "--config", "missing.yaml"), "missing.yaml"),
        (("check", "--max-size", "0"), "max-size"), (("check", "--jobs", "-1"), "jobs"),
        (("explain", "DRA000"), "DRA000"),
        (("check", "--output", "xml"), "xml"),
    ],
)  # fmt: skip
def test_wrong_use(here: Path, arguments: tuple[str, ...], words: str) -> None:
    files(here, a=POD)
    result = call(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr
    assert (here / "a.yaml").read_text() == POD


def test_convert_tells_what_it_did(here: Path) -> None:
    files(here, a=POD, b=REPORTED)
    result = call("convert")
    assert "converted a.yaml\n" in result.stdout
    assert "b.yaml:3:" in result.stdout
    assert "DRA001" not in result.stdout
    assert call("convert").exit_code == 0


def test_quiet_tells_errors_only(here: Path) -> None:
    files(here, a=POD, b=REPORTED)
    assert call("check", "-q").output == ""
    files(here, c=BROKEN)
    assert [line.split(" ")[1:3] for line in call("check", "-q").output.splitlines()] == [["error", "DRA501"]]


def test_verbose_tells_notes(here: Path) -> None:
    files(here, a=NOTED)
    assert "DRA101" not in call("check").stdout.splitlines()[0]
    assert "a.yaml:10:9: info DRA101 " in call("check", "-v").stdout


def test_diff_goes_to_standard_output_alone(here: Path) -> None:
    files(here, a=POD, b=REPORTED)
    result = call("diff")
    assert result.stdout.startswith("--- a/a.yaml\n+++ b/a.yaml\n@@ ")
    assert "DRA401" not in result.stdout
    assert "b.yaml:3:" in result.stderr
    subprocess.run(["git", "apply", "-"], input=result.stdout, text=True, check=True, cwd=here)
    assert call("check", "a.yaml").exit_code == 0


def test_json_is_one_document(here: Path) -> None:
    files(here, a=POD, b=BROKEN)
    result = call("check", "--output", "json")
    document = json.loads(result.stdout)
    assert document["summary"]["exitCode"] == result.exit_code == 3
    assert [(file["path"], file["changed"]) for file in document["files"]] == [("a.yaml", True), ("b.yaml", False)]


@pytest.mark.parametrize("code", [None, "DRA001", "dra001", "legacy-request"])
def test_explain(code: str | None) -> None:
    result = call("explain", *([code] if code else []))
    assert result.exit_code == 0
    assert "DRA001 legacy-request (warning)" in result.stdout
    if code:
        assert CODES["DRA001"].todo[:30] in result.stdout
    else:
        assert len(result.stdout.splitlines()) == len(CODES)


# Configuration.


def test_configuration(here: Path) -> None:
    (here / ".git").mkdir()
    (here / "vendor").mkdir()
    files(here / "vendor", a=POD)
    files(here, b=POD)
    (here / ".gpu2dra.yaml").write_text(CONFIG + 'exclude: [vendor/]\ntarget: "1.33"\n')
    result = call("check")
    assert ("vendor" in result.stdout, "b.yaml" in result.stdout) == (False, True)
    # A file that is named is meant, unless the one who names does not choose (pre-commit).
    assert call("check", "vendor/a.yaml").exit_code == 1
    assert call("check", "--force-exclude", "vendor/a.yaml").exit_code == 0
    assert "resource.k8s.io/v1beta2" in call("diff", "b.yaml").stdout
    assert "resource.k8s.io/v1\n" in call("diff", "b.yaml", "--target", "1.34+").stdout
    other = here / "other.yaml"
    other.write_text(CONFIG + 'target: "1.32"\ntolerations: false\n')
    text = call("diff", "b.yaml", "--config", "other.yaml").stdout
    assert "resource.k8s.io/v1beta1" in text
    assert "tolerations" not in text


def test_the_nearest_configuration_holds_for_each_file(here: Path) -> None:
    (here / ".git").mkdir()
    for name, target in (("new", "1.34+"), ("old", "1.33")):
        (here / name).mkdir()
        (here / name / ".gpu2dra.yaml").write_text(CONFIG + f'target: "{target}"\n')
        files(here / name, a=POD)
    for paths in ((), ("new", "old"), ("new/a.yaml", "old/a.yaml")):
        text = call("diff", *paths).stdout
        assert text.count("+apiVersion: resource.k8s.io/v1\n") == 1
        assert text.count("+apiVersion: resource.k8s.io/v1beta2\n") == 1


@pytest.mark.parametrize("where", [".", "sub"])
def test_a_broken_configuration_is_told_before_anything_is_written(here: Path, where: str) -> None:
    (here / ".git").mkdir()
    (here / "sub").mkdir()
    files(here, a=POD)
    files(here / "sub", z=POD)
    (here / where / ".gpu2dra.yaml").write_text(CONFIG + "exclud: []\n")
    result = call("convert", str(here))
    assert result.exit_code == 2
    assert ".gpu2dra.yaml:3:1: /exclud: unknown field" in result.stderr
    assert (here / "a.yaml").read_text() == POD
    assert (here / "sub" / "z.yaml").read_text() == POD


def test_the_hooks_leave_out_what_the_configuration_leaves_out(root: Path) -> None:
    text = (root / ".pre-commit-hooks.yaml").read_text()
    entries = [line.split(": ", 1)[1] for line in text.splitlines() if line.strip().startswith("entry:")]
    assert entries == ["gpu2dra check --force-exclude", "gpu2dra convert --force-exclude"]


# Standard input.


@pytest.mark.parametrize(
    "data",
    [
        b"", b"a: 1", PLAIN.encode(), PLAIN.replace("\n", "\r\n").encode(), b"\xef\xbb\xbf" + PLAIN.encode(),
        b"\xff\x00",
        BROKEN.encode(), REPORTED.encode() + b"\n\n\n", b"\n", "a: \u2028\x85".encode(),
    ],
)  # fmt: skip
def test_what_does_not_convert_passes_through(data: bytes) -> None:
    result = call("convert", "-", stdin=data)
    assert result.stdout_bytes == data


@pytest.mark.parametrize("eol", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("head", ["", "---\n", "# comment\n"])
@pytest.mark.parametrize("name", ["name: one", "generateName: one-"])
def test_standard_input_is_converted(eol: str, bom: str, head: str, name: str) -> None:
    text = bom + (head + POD.replace("name: one", name).removesuffix("\n")).replace("\n", eol)
    result = call("convert", "-", stdin=text.encode())
    assert result.exit_code == 1
    out = result.stdout_bytes.decode()
    assert out.startswith(bom)
    assert "\ufeff" not in out.removeprefix(bom)
    assert out.count("kind: ResourceClaimTemplate") == out.count("kind: Pod") == 1
    assert "1 object converted" in result.stderr
    again = call("convert", "-", stdin=out.encode())
    assert (again.exit_code, again.stdout_bytes) == (0, out.encode())


def test_check_and_diff_of_standard_input() -> None:
    checked = call("check", "-", stdin=POD)
    assert (checked.exit_code, checked.stdout.split(" ")[0]) == (1, "<stdin>:10:9:")
    diffed = call("diff", "-", stdin=POD)
    assert (diffed.exit_code, diffed.stdout.splitlines()[0]) == (1, "--- a/<stdin>")


def test_json_on_standard_input_has_no_room_for_its_template() -> None:
    result = call("convert", "-", stdin=JSON)
    assert (result.exit_code, result.stdout) == (3, JSON)
    assert "DRA511" in result.stderr
    items = json.dumps({"apiVersion": "v1", "kind": "List", "items": [json.loads(JSON)]}, indent=2)
    listed = call("convert", "-", stdin=items)
    assert listed.exit_code == 1
    kinds = [item["kind"] for item in json.loads(listed.stdout)["items"]]
    assert kinds == ["ResourceClaimTemplate", "Pod"]


def test_findings_of_standard_input_do_not_mix_with_the_text() -> None:
    result = call("convert", "-", "--output", "json", stdin=POD)
    assert result.stdout.startswith("apiVersion: resource.k8s.io/v1\n")
    assert json.loads(result.stderr)["summary"]["objects"] == 1


# The process.


def test_version_and_help_load_little(root: Path, here: Path) -> None:
    ours = "[name for name in sys.modules if name.startswith(('gpu2dra', 'ruamel'))]"
    code = f"import sys, gpu2dra_migrate.cli\nprint(sorted({ours}))"
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env={**os.environ, **pythonpath(root)}, capture_output=True, text=True, check=True)
    assert done.stdout == "['gpu2dra_migrate', 'gpu2dra_migrate.cli', 'gpu2dra_migrate.terminal']\n"


@pytest.mark.parametrize(
    ("arguments", "code", "out"),
    [
        (("--version",), 0, __version__), (("--help",), 0, "Exit codes"), (("check", "--help"), 0, "PATHS"),
        (("check", "a.yaml"), 1, "a.yaml:10:9:"), (("check", "--nonsense"), 2, ""), (("check", "gone"), 3, "gone"),
    ],
)  # fmt: skip
def test_the_process(
    gpu2dra: Callable[..., subprocess.CompletedProcess[bytes]],
    here: Path,
    arguments: tuple[str, ...],
    code: int,
    out: str,
) -> None:
    files(here, a=POD)
    done = gpu2dra(*arguments)
    assert (done.returncode, out in done.stdout.decode()) == (code, True), done
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("encoding", ["ascii", "cp037"])
@pytest.mark.parametrize("command", ["check", "diff", "convert"])
def test_no_encoding_breaks_it(
    gpu2dra: Callable[..., subprocess.CompletedProcess[bytes]], here: Path, encoding: str, command: str
) -> None:
    name = Path(os.fsdecode("ü-".encode() + b"\xff.yaml"))
    (here / name).write_text(POD.replace("name: a", "name: a  # ü \U0001f600"), encoding="utf-8")
    done = gpu2dra(command, env={"PYTHONIOENCODING": encoding, "PYTHONUTF8": "0"})
    assert done.returncode == 1, done.stderr
    assert b"Traceback" not in done.stderr
    if command == "diff":
        assert b"+    resourceClaimTemplateName" in done.stdout
        assert "# ü \U0001f600".encode() in done.stdout


@pytest.mark.parametrize(("command", "code"), [("check", 141), ("diff", 141), ("explain", 1), ("--help", 1)])
def test_a_reader_that_goes_ends_it_quietly(
    gpu2dra: Callable[..., subprocess.CompletedProcess[bytes]], here: Path, command: str, code: int
) -> None:
    files(here, **{f"f{number:02}": POD for number in range(40)})
    reading, writing = os.pipe()
    os.close(reading)
    done = gpu2dra(command, stdout=writing)
    os.close(writing)
    assert done.returncode == code
    assert done.stderr == b""


def test_a_reader_that_goes_does_not_stop_convert_half_way(
    gpu2dra: Callable[..., subprocess.CompletedProcess[bytes]], here: Path
) -> None:
    files(here, **{f"f{number:02}": POD for number in range(40)})
    reading, writing = os.pipe()
    os.close(reading)
    done = gpu2dra("convert", stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, b"")
    assert all("ResourceClaimTemplate" in path.read_text() for path in here.glob("*.yaml"))


def test_a_full_disk_under_the_output_is_told(
    gpu2dra: Callable[..., subprocess.CompletedProcess[bytes]], here: Path
) -> None:
    files(here, a=POD)
    with Path("/dev/full").open("wb") as full:
        done = gpu2dra("check", stdout=full)
    assert done.returncode == 2
    assert b"No space left" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("closed", [(1,), (2,), (1, 2), (0, 1, 2)])
def test_closed_streams(root: Path, here: Path, closed: tuple[int, ...]) -> None:
    files(here, a=POD)
    redirect = " ".join(f"{number}>&-" for number in closed)
    command = ["sh", "-c", f'"$0" -m gpu2dra_migrate convert a.yaml {redirect}', sys.executable]
    done = subprocess.run(command, env={**os.environ, **pythonpath(root)}, cwd=here, capture_output=True, check=False)
    assert (done.returncode, b"Traceback" in done.stderr) == (1, False)
    assert objects_of(here / "a.yaml") == ["ResourceClaimTemplate", "Pod"]


def objects_of(path: Path) -> list[str]:
    return [line.split(": ")[1] for line in path.read_text().splitlines() if line.startswith("kind: ")]


@pytest.mark.parametrize(
    ("arguments", "variables", "colored"),
    [((), {}, True), (("--no-color",), {}, False), ((), {"NO_COLOR": "1"}, False), ((), {"NO_COLOR": ""}, True)],
)
@pytest.mark.parametrize("command", ["check", "diff"])
def test_colors_on_a_terminal(
    root: Path, here: Path, command: str, arguments: tuple[str, ...], variables: dict[str, str], colored: bool
) -> None:
    files(here, a=POD)
    main, child = pty.openpty()
    environment = {**os.environ, **pythonpath(root), "TERM": "xterm", **variables}
    done = subprocess.run(
        [sys.executable, "-m", "gpu2dra_migrate", command, *arguments], env=environment, stdout=child,
        stderr=subprocess.DEVNULL, cwd=here, check=False,
    )  # fmt: skip
    os.close(child)
    shown = os.read(main, 1 << 16)
    os.close(main)
    assert done.returncode == 1
    assert (b"\x1b[" in shown) is colored


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_leave_each_file_whole(root: Path, here: Path, number: signal.Signals, code: int) -> None:
    count = 600
    files(here, **{f"f{index:03}": POD for index in range(count)})
    process = subprocess.Popen(
        [sys.executable, "-m", "gpu2dra_migrate", "convert", "--jobs", "2"],
        env={**os.environ, **pythonpath(root)}, cwd=here, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    assert process.stdout
    deadline = time.monotonic() + 30
    while not any("ResourceClaimTemplate" in path.read_text() for path in here.glob("f00*.yaml")):
        assert time.monotonic() < deadline
    os.killpg(process.pid, number) if number is signal.SIGINT else process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert b"Traceback" not in errors, errors.decode()
    assert process.returncode in (code, 1)  # 1: all was done before the signal came
    assert not list(here.glob(".*.tmp"))
    texts = {path.read_text() for path in here.glob("*.yaml")}
    assert POD in texts or process.returncode == 1
    assert len(texts) <= 2


def test_an_error_of_our_own_is_one_line(here: Path, root: Path) -> None:
    code = (
        "import sys\nfrom gpu2dra_migrate import cli\n"
        "def fail(*_): raise ZeroDivisionError('oh')\n"
        "cli._execute = fail\nsys.argv = ['gpu2dra', 'check']\ncli.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **pythonpath(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith("gpu2dra: internal error: ZeroDivisionError: oh\nThis is a bug")
