"""Device descriptors: JSON files that hold a `DeviceSpec`."""

from __future__ import annotations

import json
from pathlib import Path

from metadef import json_files
from metadef.device.spec import DeviceSpec, from_data, to_data
from metadef.diagnostics import DeviceError

_WHAT = "device descriptor"


def to_json(spec: DeviceSpec) -> str:
    """Return a spec as the text of a descriptor."""
    return json.dumps(to_data(spec), indent=2, allow_nan=False) + "\n"


def from_json(text: str, source: str = _WHAT) -> DeviceSpec:
    """Return the spec in the text of a descriptor; `source` names it in errors.

    Raises:
        DeviceError: not JSON, or a field is missing, unknown or out of range.
    """
    return from_data(json_files.parse(text, source, DeviceError), source)


def load(path: Path) -> DeviceSpec:
    """Return the spec in a descriptor file.

    Raises:
        DeviceError: the file cannot be read, or holds no valid descriptor.
    """
    return from_json(json_files.read(path, _WHAT, DeviceError), f"{_WHAT} '{path}'")


def save(spec: DeviceSpec, path: Path) -> None:
    """Write a descriptor file.

    Raises:
        DeviceError: the file cannot be written.
    """
    json_files.write(to_json(spec), path, _WHAT, DeviceError)
