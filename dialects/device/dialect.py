"""The `device` dialect."""

from metadef import ir


class DeviceDialect(ir.ext.Dialect, name="device"):  # type: ignore[call-arg]
    """Traits of a device."""


class SpecAttr(DeviceDialect.Attribute, name="spec"):  # type: ignore[call-arg, name-defined]
    """`#device.spec<{...}>`: the traits of one device as a dictionary (device/spec.py reads it)."""

    traits: ir.DictAttr
