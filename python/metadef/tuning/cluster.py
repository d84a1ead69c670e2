"""Kernels measured on the machines of a Ray cluster that announce the device.

A machine joins with `metadef worker ADDRESS`, which announces the fingerprint of each device that
it can measure as a resource of Ray's, one unit: one measurement at a time. When a machine dies in
the middle, Ray gives its measurement to another one; what had come back is kept.
"""

from __future__ import annotations

import contextlib
import importlib.util
import logging
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from metadef.codegen.kernel import CompiledKernel
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError
from metadef.measure.alone import KernelRun, Outcome, Rounds, measure_alone

#: what resources that stand for a device start with
_PREFIX = "metadef-"
#: A measurement goes to another machine so many times when one dies.
_RETRIES = 3
_KNOCK_SECONDS = 5.0


def resource_of(device: DeviceSpec) -> str:
    """Return the name of Ray's resource for a device."""
    return _PREFIX + device.fingerprint()[:32]


def require_ray() -> None:
    """Check that Ray is installed.

    Raises:
        MetadefError: it is not.
    """
    if importlib.util.find_spec("ray") is None:
        raise MetadefError(
            "cluster: needs Ray, which is not installed; pip install 'metadef[cluster]'"
        )


@dataclass(eq=False)
class Cluster:
    """The machines of a cluster that announce one device."""

    resource: str
    slots: int
    _remote: Any

    def measure(
        self, kernels: Sequence[CompiledKernel], run: KernelRun, threads: int, rounds: Rounds
    ) -> list[Outcome]:
        """Measure on a machine that is free.

        Raises:
            MetadefError: the machine died, and so did those that took over.
        """
        import ray

        task = self._remote.remote(list(kernels), run, threads, rounds)
        try:
            found: list[Outcome] = ray.get(task)
        except ray.exceptions.RayError as error:
            raise MetadefError(
                f"cluster: a measurement was lost {_RETRIES + 1} times: "
                f"{str(error).splitlines()[0]}"
            ) from error
        return found


@contextlib.contextmanager
def join_cluster(address: str, device: DeviceSpec) -> Iterator[Cluster]:
    """Connect to the cluster at `address` (`auto`: the one that runs on this machine).

    Raises:
        MetadefError: Ray is not installed, there is no cluster, or no machine of it announces the
            device.
    """
    require_ray()
    import ray

    joined = not ray.is_initialized()
    if joined:
        try:
            _knock(address)  # Ray itself would wait for minutes
            ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, ValueError, RuntimeError) as error:
            raise MetadefError(
                f"cluster '{address}': expected a Ray cluster there, got: "
                f"{str(error).splitlines()[0]}; start one with `ray start --head`, and machines "
                "with `metadef worker ADDRESS`"
            ) from error
    try:
        yield _cluster_of(ray, address, device)
    finally:
        if joined:
            ray.shutdown()


def _knock(address: str) -> None:
    """Connect to HOST:PORT and leave again; other forms of address are Ray's business."""
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=_KNOCK_SECONDS).close()


def _cluster_of(ray: Any, address: str, device: DeviceSpec) -> Cluster:
    resource = resource_of(device)
    announced = ray.cluster_resources()
    slots = int(announced.get(resource, 0))
    if not slots:
        others = sorted(name for name in announced if name.startswith(_PREFIX))
        raise MetadefError(
            f"cluster '{address}': expected a machine that announces the device '{device.name}' "
            f"({resource}), got {', '.join(others) or 'none that announces a device'}; "
            "`metadef worker ADDRESS --device DEVICE` on a machine announces one"
        )
    remote = ray.remote(num_cpus=0, resources={resource: 1}, max_retries=_RETRIES)(_measure_there)
    return Cluster(resource, slots, remote)


def _measure_there(
    kernels: list[CompiledKernel], run: KernelRun, threads: int, rounds: Rounds
) -> list[Outcome]:
    return measure_alone(kernels, run, threads, rounds)
