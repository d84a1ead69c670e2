"""Pass `read-dlti`: take the module's device from what `attach-dlti` wrote."""

from __future__ import annotations

from dataclasses import dataclass

from metadef import ir
from metadef.device.attribute import set_device
from metadef.device.dlti import ATTRIBUTE, from_dlti
from metadef.diagnostics import DeviceError
from metadef.pipeline import Pass


@dataclass(frozen=True)
class ReadDlti(Pass):
    """Write `device.spec` from DLTI's target system of one device; nothing of it is lost.

    Before:
        module attributes {dlti.target_system_spec = #dlti.target_system_spec<
          "CPU" = #dlti.target_device_spec<"max_vector_op_width" = 256, "cores" = 4, ..>>}
    After:
        module attributes {
          device.spec = #device.spec<{cores = 4 : i64, ..}>,
          dlti.target_system_spec = #dlti.target_system_spec<..>}
    """

    requires = "a module with dlti.target_system_spec"
    leaves = "the same with the attribute device.spec"

    def run(self, module: ir.Operation) -> None:
        if ATTRIBUTE not in module.attributes:
            raise DeviceError(f"module: expected the attribute '{ATTRIBUTE}', got none")
        with module.context:
            set_device(module, from_dlti(module.attributes[ATTRIBUTE]))
