"""By hand, as `python -m controlplane`: `build` everything, have a control plane `up`, or show a `demo` in one."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterator

from controlplane import build, demo, gpus
from controlplane.cluster import ControlPlane
from controlplane.daemons import DaemonError


def _build() -> None:
    planes = build.control_planes()
    for binaries in planes.values():
        binaries(print)
    for name in build.tools():
        build.ensure(name)


def _up(release: str) -> None:
    with _running(release) as plane, contextlib.suppress(KeyboardInterrupt):
        print(f"Kubernetes {release} is up, without nodes; Ctrl-C ends it. Logs: {plane.logs}")
        print(f"export KUBECONFIG={plane.admin_kubeconfig}", flush=True)
        while True:
            plane.daemons.check()
            time.sleep(1)


def _demo(release: str) -> None:
    with _running(release) as plane, contextlib.suppress(KeyboardInterrupt):
        demo.run(plane)


@contextlib.contextmanager
def _running(release: str) -> Iterator[ControlPlane]:
    """Run a control plane that holds the two DeviceClasses of NVIDIA's driver."""
    planes = build.control_planes()
    if release not in planes:
        sys.exit(f"no Kubernetes {release} here; there is {', '.join(planes)}")
    # A terminal that closes ends it in the same way as Ctrl-C does.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with ControlPlane(planes[release](print)) as plane:
        for device_class in gpus.device_classes():
            plane.client.create(device_class)
        yield plane


def main() -> None:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(prog="controlplane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build what is missing in the cache")
    for name, told in (("up", "run a control plane until Ctrl-C"), ("demo", "show the webhook at work in one")):
        command = commands.add_parser(name, help=told)
        command.add_argument("release", nargs="?", default=os.environ.get("VERSION", "1.37"))
    arguments = parser.parse_args()
    try:
        if arguments.command == "build":
            _build()
        else:
            {"up": _up, "demo": _demo}[arguments.command](arguments.release)
    except (build.BuildError, DaemonError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
