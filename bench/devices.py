"""The devices that this machine can be."""

from __future__ import annotations

from metadef.device.restrict import restricted
from metadef.device.shipped import shipped_names
from metadef.device.spec import DeviceSpec
from metadef.runtime.host import device_named, this_device


def device_here(name: str) -> DeviceSpec:
    """Return this machine for `host`; with code kept to a shipped device's, for its name; or what a
    descriptor's file says.

    Caches and cores are this machine's: a plan for the shipped device itself would suit others.

    Raises:
        MetadefError: no such device, or this machine does not run its code.
    """
    spec = device_named(name)
    return restricted(this_device(), spec) if name in shipped_names() else spec
