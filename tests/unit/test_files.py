"""Files are read whole or not at all, and written in one step: whatever goes wrong, they are as they were."""

from __future__ import annotations

import errno
import os
import pickle
import socket
import stat
from typing import TYPE_CHECKING

import pytest

from gpu2dra_migrate.files import Unreadable, decode, read_text, write_text

if TYPE_CHECKING:
    from pathlib import Path

LARGE = 1 << 20


@pytest.mark.parametrize("text", ["", "a: 1", "\ufeffa: 1\r\nb: 2\r\n", "a: \U0001f600\n\n\n", "a\rb\u2028c\n"])
def test_text_comes_back_as_it_was(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(text.encode())
    assert read_text(path, LARGE) == text
    write_text(path, read_text(path, LARGE))
    assert path.read_bytes() == text.encode()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"a: \xff\n", "byte 0xff in line 1"),
        (b"a: 1\n\nb: \xc3\n", "byte 0xc3 in line 3"),
        (b"a: \xed\xa0\x80\n", "byte 0xed in line 1"),  # a surrogate half
        ("a: 1\n".encode("utf-16"), "NUL bytes"),
        (b"\0", "NUL bytes"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(Unreadable, match=message) as caught:
        decode(data)
    assert caught.value.code == "DRA502"


def test_size_limit(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a: 123\n")
    assert read_text(path, 7) == "a: 123\n"
    with pytest.raises(Unreadable, match=r"7 bytes, more than 6; raise --max-size") as caught:
        read_text(path, 6)
    assert caught.value.code == "DRA503"


def _fifo(path: Path) -> None:
    os.mkfifo(path)


def _folder(path: Path) -> None:
    path.mkdir()


def _loop(path: Path) -> None:
    path.symlink_to(path)


def _broken(path: Path) -> None:
    path.symlink_to(path.with_name("nowhere"))


def _nothing(path: Path) -> None:
    assert not path.exists()


@pytest.mark.parametrize("make", [_fifo, _folder, _loop, _broken, _nothing])
def test_what_is_no_file_is_told_and_never_waited_for(tmp_path: Path, make: object) -> None:
    path = tmp_path / "x.yaml"
    assert callable(make)
    make(path)
    with pytest.raises(Unreadable) as caught:
        read_text(path, LARGE)
    assert caught.value.code == "DRA510"


def test_a_socket_is_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket may not be long
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("x.yaml")
        with pytest.raises(Unreadable) as caught:
            read_text(tmp_path / "x.yaml", LARGE)
    assert caught.value.code == "DRA510"


def test_permission_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(Unreadable, match="Permission denied") as caught:
        read_text(tmp_path / "x.yaml", LARGE)
    assert caught.value.code == "DRA510"


def test_the_error_survives_the_way_between_processes() -> None:
    error = pickle.loads(pickle.dumps(Unreadable("DRA510", "why")))  # noqa: S301 - our own bytes
    assert (error.code, error.message) == ("DRA510", "why")


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o755, 0o664, 0o2644])
def test_mode_bits_stay(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("old")
    path.chmod(mode)
    write_text(path, "new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_the_owner_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("old")
    given: list[tuple[int, int]] = []
    own = path.stat()

    def fchown(_: int, uid: int, gid: int) -> None:
        given.append((uid, gid))
        raise PermissionError  # as for everybody but root

    class Elsewhere:
        st_uid, st_gid, st_mode = own.st_uid + 1, own.st_gid + 2, own.st_mode

    real = os.stat
    monkeypatch.setattr(os, "fchown", fchown)
    monkeypatch.setattr(os, "stat", lambda name, **more: Elsewhere if name == str(path) else real(name, **more))
    write_text(path, "new")
    assert given == [(own.st_uid + 1, own.st_gid + 2)]
    assert path.read_text() == "new"


def test_a_new_file_gets_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_text(tmp_path / "new.yaml", "a")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new.yaml").stat().st_mode) == 0o640


def test_a_link_stays_a_link_and_its_target_is_written(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "x.yaml", tmp_path / "link.yaml"
    target.write_text("old")
    link.symlink_to(target)
    write_text(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert [path.name for path in (tmp_path / "far").iterdir()] == ["x.yaml"]


@pytest.mark.parametrize("call", ["open", "replace", "fchmod"])
def test_a_failure_leaves_everything_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("old")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, call, full)
    with pytest.raises(OSError, match="No space left"):
        write_text(path, "new")
    monkeypatch.undo()
    assert path.read_text() == "old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.yaml"]


def test_an_interrupt_leaves_no_temporary_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("old")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_text(path, "new")
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.yaml"]


def test_a_file_that_may_not_be_written_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError):
        write_text(path, "new")
    assert path.read_text() == "old"
