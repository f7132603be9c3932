"""Certificates from a folder: as the kubelet changes it, as people break it, and who keeps the caBundle then."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from controlplane.client import wait_for
from gpu2dra_webhook.certificates import CertificateError, from_files
from gpu2dra_webhook.certificates.files import FromFiles, read_pair
from gpu2dra_webhook.metrics import Metrics
from gpu2dra_webhook.settings import Settings
from webhook.certificates.tls import (
    DAY,
    HOUR,
    NAME,
    Clock,
    Foreign,
    connected,
    echo,
    foreign,
    served,
    serving,
    trusting,
)

if TYPE_CHECKING:
    from pathlib import Path


@dataclass
class Mount:
    """A Secret's folder as the kubelet makes it: `..data` links to a folder of this version, the files link into it."""

    folder: Path
    versions: int = 0

    def show(self, pair: Foreign, *, ca: bytes | None = None) -> None:
        """Show another version of the Secret, all files at once."""
        self.versions += 1
        version = self.folder / f"..version-{self.versions}"
        version.mkdir()
        pair.into(version, ca=ca)
        link = self.folder / "..data_tmp"
        link.symlink_to(version.name)
        link.rename(self.folder / "..data")
        for file in version.iterdir():
            if not (self.folder / file.name).exists():
                (self.folder / file.name).symlink_to(f"..data/{file.name}")


@pytest.fixture
def clock() -> Clock:
    """Return a clock that shows the real time, which the clients judge by, until it is set."""
    return Clock(time.time())


@pytest.fixture
def mount(tmp_path: Path) -> Mount:
    """Return an empty mount."""
    return Mount(tmp_path)


def settings(mount: Mount) -> Settings:
    return Settings(certificates="files", certificate_dir=mount.folder)


def started(mount: Mount, clock: Clock) -> FromFiles:
    return FromFiles(settings(mount), Metrics(), clock=clock)


def reloads(metrics: Metrics, result: str) -> float:
    lines = metrics.render().decode().splitlines()
    prefix = f'gpu2dra_certificate_reloads_total{{result="{result}"}} '
    return next((float(line.removeprefix(prefix)) for line in lines if line.startswith(prefix)), 0)


def test_a_pair_of_the_folder_is_served(mount: Mount, clock: Clock) -> None:
    pair = foreign(clock())
    mount.show(pair)
    certificates = started(mount, clock)
    with serving(certificates.ssl_context()) as address:
        served(address, pair.certificate)
    assert certificates.problems() == ()
    assert certificates.trust() == pair.certificate
    assert certificates.expires_at() == int(clock() + 90 * DAY)


def test_a_new_pair_is_served_without_a_dropped_connection(mount: Mount, clock: Clock) -> None:
    old, new = foreign(clock()), foreign(clock())
    mount.show(old)
    certificates = started(mount, clock)
    with serving(certificates.ssl_context()) as address, connected(address, trusting(old.certificate)) as client:
        assert echo(client, b"before") == b"before"
        mount.show(new)
        certificates.turn()
        served(address, new.certificate)
        assert echo(client, b"after") == b"after"


def test_the_background_thread_sees_a_new_pair(mount: Mount) -> None:
    old, new = foreign(time.time()), foreign(time.time())
    mount.show(old)
    certificates = FromFiles(settings(mount), Metrics(), propagation=0.01)
    certificates.start()
    try:
        mount.show(new)
        wait_for("the new pair is in use", lambda: certificates.trust() == new.certificate)
    finally:
        certificates.stop()


def test_files_are_read_from_one_version_of_the_secret(mount: Mount, clock: Clock) -> None:
    old, new = foreign(clock()), foreign(clock())
    mount.show(old)
    mount.show(new)
    # What a name of the mount leads to does not matter while the kubelet changes it.
    (mount.folder / "tls.key").unlink()
    (mount.folder / "tls.key").symlink_to("..version-1/tls.key")
    assert read_pair(mount.folder).leaf.chain == new.certificate + b"\n" + new.key


BROKEN: dict[str, tuple[Callable[[float], Foreign], str]] = {
    "another's key": (lambda now: Foreign(foreign(now).certificate, foreign(now).key), "do not go together"),
    "encrypted key": (lambda now: foreign(now, encrypted=True), "the key is encrypted"),
    "garbage": (lambda now: Foreign(b"garbage", b"garbage"), "no certificate that can be used"),
    "empty": (lambda now: Foreign(b"", b""), "no certificate that can be used"),
}


@pytest.mark.parametrize(("make", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_pair_keeps_the_one_in_use_and_is_told_once(
    mount: Mount,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
    make: Callable[[float], Foreign],
    message: str,
) -> None:
    good = foreign(clock())
    mount.show(good)
    metrics = Metrics()
    certificates = FromFiles(settings(mount), metrics, clock=clock)
    mount.show(make(clock()))
    with serving(certificates.ssl_context()) as address:
        for _ in range(3):
            certificates.turn()
        served(address, good.certificate)
        warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert len(warnings) == 1
        assert message in warnings[0]
        assert warnings[0].endswith("; the certificate in use stays.")
        assert reloads(metrics, "error") == 1
        better = foreign(clock())
        mount.show(better)
        certificates.turn()
        served(address, better.certificate)
    assert reloads(metrics, "ok") == 2


@pytest.mark.parametrize(("make", "message"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_pair_at_the_start_is_an_error_that_names_the_folder(
    mount: Mount, clock: Clock, make: Callable[[float], Foreign], message: str
) -> None:
    mount.show(make(clock()))
    with pytest.raises(CertificateError, match=message) as caught:
        started(mount, clock)
    assert str(caught.value).startswith(f"{mount.folder}: ")


def test_a_missing_file_is_named(mount: Mount) -> None:
    with pytest.raises(CertificateError, match=r"No such file or directory: tls\.crt"):
        from_files(settings(mount))


def test_the_folder_has_to_be_named() -> None:
    with pytest.raises(CertificateError, match="--certificate-dir"):
        from_files(Settings(certificates="files"))


def test_a_pair_that_has_expired_is_looked_up_again_in_the_handshake(mount: Mount, clock: Clock) -> None:
    old = foreign(clock(), days=1 / 24)
    mount.show(old)
    certificates = started(mount, clock)
    new = foreign(clock())
    mount.show(new)
    with serving(certificates.ssl_context()) as address:
        served(address, old.certificate)
        clock.now += HOUR
        served(address, new.certificate)


def test_a_pair_that_has_expired_is_told_and_not_served(mount: Mount, clock: Clock) -> None:
    pair = foreign(clock(), days=1 / 24)
    mount.show(pair)
    certificates = started(mount, clock)
    clock.now += HOUR
    assert certificates.problems() == (f"{mount.folder}: tls.crt has expired or is not valid yet",)
    with (
        serving(certificates.ssl_context()) as address,
        pytest.raises(OSError, match="CERTIFICATE_EXPIRED"),
    ):
        served(address, pair.certificate)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([NAME], True),
        (["*.gpu2dra-system.svc"], True),
        (["hooks.example"], True),
        (["gpu2dra.other.svc"], False),
        (["*.svc"], False),
    ],
    ids=["service", "wildcard", "asked for", "other namespace", "too wide"],
)
def test_a_pair_for_other_names_is_told(mount: Mount, clock: Clock, names: list[str], expected: bool) -> None:
    mount.show(foreign(clock(), names=names))
    chosen = Settings(certificates="files", certificate_dir=mount.folder, server_names=("hooks.example",))
    problems = FromFiles(chosen, Metrics(), clock=clock).problems()
    assert problems == (() if expected else (f"{mount.folder}: tls.crt is not for {NAME}",))


def test_a_ca_of_the_folder_is_what_verifies(mount: Mount, clock: Clock) -> None:
    pair, other = foreign(clock()), foreign(clock())
    mount.show(pair, ca=other.certificate)
    assert started(mount, clock).trust() == other.certificate
