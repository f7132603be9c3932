"""By hand: `python -m controlplane build` builds everything, `python -m controlplane up 1.37` runs a control plane."""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import time

from controlplane import build, gpus
from controlplane.cluster import ControlPlane
from controlplane.daemons import DaemonError


def _build() -> None:
    planes = build.control_planes()
    for binaries in planes.values():
        binaries(print)
    for name in build.tools():
        build.ensure(name)


def _up(release: str) -> None:
    planes = build.control_planes()
    if release not in planes:
        sys.exit(f"no Kubernetes {release} here; there is {', '.join(planes)}")
    # A terminal that closes ends it in the same way as Ctrl-C does.
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.default_int_handler)
    with ControlPlane(planes[release](print)) as plane, contextlib.suppress(KeyboardInterrupt):
        for device_class in gpus.device_classes():
            plane.client.create(device_class)
        print(f"Kubernetes {release} is up, without nodes; Ctrl-C ends it. Logs: {plane.logs}")
        print(f"export KUBECONFIG={plane.admin_kubeconfig}", flush=True)
        while True:
            plane.daemons.check()
            time.sleep(1)


def main() -> None:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(prog="controlplane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("build", help="build what is missing in the cache")
    up = commands.add_parser("up", help="run a control plane until Ctrl-C")
    up.add_argument("release", nargs="?", default=os.environ.get("VERSION", "1.37"))
    arguments = parser.parse_args()
    try:
        if arguments.command == "build":
            _build()
        else:
            _up(arguments.release)
    except (build.BuildError, DaemonError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
