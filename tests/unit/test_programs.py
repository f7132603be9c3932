"""Programs of others run with limits, without a network, a cluster or settings, and leave nothing behind."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpu2dra_migrate import programs
from gpu2dra_migrate.programs import ProgramError, find, isolated, run

CONNECT = "import socket; socket.create_connection(('127.0.0.1', {port}), timeout=2)"


def python(code: str, **more: object) -> str:
    return run([sys.executable, "-c", code], **more)  # type: ignore[arg-type] # each test gives its own


def test_input_output_folder_and_environment(tmp_path: Path) -> None:
    code = "import os, sys; print(sys.stdin.read(), os.getcwd(), os.environ['MINE'])"
    said = python(code, stdin="héllo", cwd=tmp_path, environment={"MINE": "1"})
    assert said == f"héllo {tmp_path.resolve()} 1\n"


def test_it_sees_nothing_of_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    monkeypatch.setenv("KUBECONFIG", "/somewhere")
    code = "import os; print(os.environ.get('SECRET_TOKEN'), os.environ['KUBECONFIG'], os.listdir(os.environ['HOME']))"
    assert python(code) == f"None {os.devnull} []\n"


def test_its_home_goes_with_it() -> None:
    home = Path(python("import os; print(os.environ['HOME']); open(os.environ['HOME'] + '/f', 'w')").strip())
    assert home.name.startswith("gpu2dra-home-")
    assert not home.exists()


def test_a_failure_is_what_it_says() -> None:
    with pytest.raises(ProgramError, match=r"^Error: it is late$"):
        python("import sys; sys.exit('Error: it\\n  is late')")
    with pytest.raises(ProgramError, match=r"^exit code 3$"):
        python("import sys; sys.exit(3)")
    with pytest.raises(ProgramError, match=r"signal 11"):
        python("import os; os.kill(os.getpid(), 11)")


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(ProgramError, match=r"/nowhere/helm"):
        run(["/nowhere/helm"])


def test_a_program_that_takes_too_long_ends_with_its_children(tmp_path: Path) -> None:
    child = tmp_path / "child"
    code = (
        "import subprocess, sys, time\n"
        f"process = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        f"open({str(child)!r}, 'w').write(str(process.pid))\ntime.sleep(60)"
    )
    with pytest.raises(ProgramError, match=r"takes more than 2 s"):
        python(code, limit=2.0)
    assert gone(int(child.read_text()))


def gone(pid: int) -> bool:
    """Whether a process has ended, in a moment at most."""
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except FileNotFoundError:
            return True
        time.sleep(0.05)
    return False


def test_an_interrupt_ends_it(tmp_path: Path, root: Path) -> None:
    started = tmp_path / "started"
    inner = f"import os, time; open({str(started)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    outer = (
        "import signal, sys\nfrom gpu2dra_migrate.programs import run\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have these tests ignore it\n"
        f"run([sys.executable, '-c', {inner!r}])"
    )
    environment = {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{root / 'migrate'}"}
    process = subprocess.Popen([sys.executable, "-c", outer], env=environment, stderr=subprocess.DEVNULL)
    while not (started.exists() and started.read_text()):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) != 0
    assert gone(int(started.read_text()))


def test_its_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import time; time.sleep(0.3); b = bytearray({} << 20); print(len(b))"
    monkeypatch.setattr(programs, "MEMORY_LIMIT", 256 << 20)
    assert python(code.format(64)) == f"{64 << 20}\n"
    with pytest.raises(ProgramError, match=r"MemoryError"):
        python(code.format(1024))


def test_it_has_no_network_where_that_is_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = CONNECT.format(port=server.getsockname()[1])
        subprocess.run([sys.executable, "-c", code], check=True)
        with pytest.raises(ProgramError) if isolated() else contextlib.nullcontext():
            python(code)


def test_where_no_network_can_be_taken_away_that_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    programs._wrapper.cache_clear()
    try:
        monkeypatch.setattr(programs, "_WRAPPERS", (("no-such-unshare",), ("false", "--net")))
        assert not isolated()
        assert python("print(1)") == "1\n"
    finally:
        monkeypatch.undo()
        programs._wrapper.cache_clear()


def test_programs_are_found_on_path_or_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("helm", "other"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("GPU2DRA_HELM", raising=False)
    assert (find("helm"), find("kustomize")) == (str(tmp_path / "helm"), None)
    monkeypatch.setenv("GPU2DRA_HELM", str(tmp_path / "other"))
    assert find("helm") == str(tmp_path / "other")
    for absent in ("", "/nowhere/helm"):
        monkeypatch.setenv("GPU2DRA_HELM", absent)
        assert find("helm") is None
