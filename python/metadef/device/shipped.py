"""The descriptors that come with metadef, from data sheets, by name; any other device is a file."""

from __future__ import annotations

import importlib.resources
from pathlib import Path

from metadef.device.descriptor import from_json, load
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import DeviceError, near_names

_FOLDER = "descriptors"
#: this machine, where a name of a device is asked for
HOST = "host"


def shipped_names() -> tuple[str, ...]:
    """Return the names of the shipped descriptors."""
    files = importlib.resources.files("metadef.device").joinpath(_FOLDER).iterdir()
    return tuple(sorted(f.name.removesuffix(".json") for f in files if f.name.endswith(".json")))


def shipped(name: str) -> DeviceSpec:
    """Return the shipped device of that name.

    Raises:
        DeviceError: there is none; names near ones.
    """
    names = shipped_names()
    if name not in names:
        known = (HOST, *names)
        hint = near_names(name, known) or f"; known are {', '.join(known)}"
        raise DeviceError(f"device '{name}': no such file, and no shipped device{hint}")
    file = importlib.resources.files("metadef.device").joinpath(_FOLDER, f"{name}.json")
    return from_json(file.read_text(encoding="utf-8"), f"shipped device '{name}'")


def load_device(device: str | Path) -> DeviceSpec:
    """Return the device of a descriptor's path, or the shipped one of that name.

    Raises:
        DeviceError: neither, or the descriptor is not a good one.
    """
    path = Path(device)
    is_path = isinstance(device, Path) or len(path.parts) > 1 or path.suffix == ".json"
    return load(path) if is_path or path.is_file() else shipped(str(device))
