"""A device as MLIR's own DLTI attribute, for passes that are not ours, and back.

    #dlti.target_system_spec<"CPU" = #dlti.target_device_spec<
        "L1_cache_size_in_bytes" = 32768, "max_vector_op_width" = 256,
        "cores" = 4, "caches" = #dlti.map<"l1" = #dlti.map<"bytes" = 32768, ..>, ..>, ..>>

Fields are entries of their own names, objects are maps, and caches a map by level, so that a query
can name any of them. The first two say again what upstream passes ask for by these names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from metadef import ir
from metadef.device.attribute import attribute_to_plain, plain_to_attribute
from metadef.device.spec import DeviceSpec, from_data, to_data
from metadef.diagnostics import DeviceError

#: the module's attribute
ATTRIBUTE = "dlti.target_system_spec"
_L1, _WIDTH = "L1_cache_size_in_bytes", "max_vector_op_width"
#: strings, the openings of DLTI's maps, arrows, and other brackets
_TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|#dlti\.\w+<|->|<|>|[^"#<>-]+|.', re.DOTALL)


def to_dlti(spec: DeviceSpec) -> ir.Attribute:
    """Return a device as `#dlti.target_system_spec` in the current context."""
    data = to_data(spec)
    data["caches"] = {f"l{c.pop('level')}": c for c in data["caches"]}
    upstream = {_WIDTH: spec.vector_bits}
    if spec.caches:
        upstream[_L1] = spec.caches[0].bytes
    device = _map("target_device_spec", {**upstream, **data})
    return ir.Attribute.parse(f'#dlti.target_system_spec<"{spec.kind.upper()}" = {device}>')


def from_dlti(attribute: ir.Attribute) -> DeviceSpec:
    """Return the device that a `#dlti.target_system_spec` of `to_dlti` holds.

    Raises:
        DeviceError: another attribute, not of one device, or not of ours.
    """
    text = str(attribute)
    wanted = f"attribute '{ATTRIBUTE}': expected #dlti.target_system_spec of one device"
    if not text.startswith("#dlti.target_system_spec<"):
        raise DeviceError(f"{wanted}, got {text}")
    try:
        devices = attribute_to_plain(ir.Attribute.parse("".join(_as_dictionaries(text))))
    except ir.MLIRError as error:
        raise DeviceError(f"{wanted} whose keys are names, got {text}") from error
    if len(devices) != 1:
        raise DeviceError(f"{wanted}, got those of {', '.join(devices)}")
    (data,) = devices.values()
    fields = {name: value for name, value in data.items() if name not in (_L1, _WIDTH)}
    caches = fields.get("caches")
    if isinstance(caches, dict):
        fields["caches"] = [{"level": _level(name), **c} for name, c in sorted(caches.items())]
    return from_data(fields, f"attribute '{ATTRIBUTE}'")


def _level(name: str) -> int:
    if not re.fullmatch(r"l[1-8]", name):
        raise DeviceError(f"attribute '{ATTRIBUTE}': caches: expected l1 to l8, got '{name}'")
    return int(name[1:])


def _map(kind: str, data: dict[str, Any]) -> str:
    entries = ", ".join(f"{ir.StringAttr.get(k)} = {_value(v)}" for k, v in data.items())
    return f"#dlti.{kind}<{entries}>"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return _map("map", value)
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    return str(plain_to_attribute(value))


def _as_dictionaries(text: str) -> Iterator[str]:
    """Yield the text with DLTI's maps as dictionaries, which MLIR's bindings can read."""
    closing = []
    for token in _TOKENS.findall(text):
        if token.startswith("#dlti."):
            closing.append("}")
            yield "{"
        elif token == "<":
            closing.append(">")
            yield token
        elif token == ">":
            yield closing.pop()
        else:
            yield token
