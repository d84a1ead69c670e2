"""`metadef worker`: lets a Ray cluster measure kernels on this machine."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys

from metadef.cli.usage import count

HELP = "measure kernels on this machine for a cluster's tuning"
DESCRIPTION = (
    "Join the Ray cluster at ADDRESS and announce the devices that this machine can measure: "
    "itself, and those given by --device whose code it runs. `metadef tune --cluster` measures "
    "there. Runs until it is ended."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is the command's own."""
    parser.add_argument(
        "address", metavar="ADDRESS", help="of the cluster's head, as 10.0.0.1:6379"
    )
    parser.add_argument(
        "--device",
        metavar="DEVICE",
        action="append",
        default=[],
        help="another device to announce: a descriptor's file or a shipped one (again for more)",
    )
    parser.add_argument(
        "--threads", metavar="N", type=count, help="processors for Ray (default: all)"
    )


def run(args: argparse.Namespace) -> int:
    """Start Ray's processes and wait."""
    from metadef.device.restrict import check_runs
    from metadef.runtime.host import device_named, this_device
    from metadef.tuning.cluster import require_ray, resource_of

    require_ray()
    here = this_device()
    devices = [here, *(device_named(name) for name in args.device)]
    for device in devices:
        check_runs(device, here)
    resources = {resource_of(device): 1 for device in devices}
    for device in devices:
        print(f"{device.name}: {resource_of(device)}", flush=True)
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block"]
    command += ["--address", args.address, "--resources", json.dumps(resources)]
    if args.threads is not None:
        command += ["--num-cpus", str(args.threads)]
    return subprocess.run(command, check=False).returncode
