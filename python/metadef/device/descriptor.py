"""Device descriptors: JSON files that hold a `DeviceSpec`."""

from __future__ import annotations

import json
from pathlib import Path

from metadef.device.spec import DeviceSpec, from_data, to_data
from metadef.diagnostics import DeviceError


def to_json(spec: DeviceSpec) -> str:
    """Return a spec as the text of a descriptor."""
    return json.dumps(to_data(spec), indent=2, allow_nan=False) + "\n"


def from_json(text: str, source: str = "device descriptor") -> DeviceSpec:
    """Return the spec in the text of a descriptor; `source` names it in errors.

    Raises:
        DeviceError: not JSON, or a field is missing, unknown or out of range.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise DeviceError(f"{source}: expected JSON, got {error}") from error
    return from_data(data, source)


def load(path: Path) -> DeviceSpec:
    """Return the spec in a descriptor file.

    Raises:
        DeviceError: the file cannot be read, or holds no valid descriptor.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DeviceError(f"device descriptor '{path}': cannot be read: {error}") from error
    return from_json(text, f"device descriptor '{path}'")


def save(spec: DeviceSpec, path: Path) -> None:
    """Write a descriptor file.

    Raises:
        DeviceError: the file cannot be written.
    """
    try:
        path.write_text(to_json(spec), encoding="utf-8")
    except OSError as error:
        raise DeviceError(f"device descriptor '{path}': cannot be written: {error}") from error
