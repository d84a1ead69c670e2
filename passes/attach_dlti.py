"""Pass `attach-dlti`: say the module's device in MLIR's own words, for passes that are not ours."""

from __future__ import annotations

from dataclasses import dataclass

from metadef import ir
from metadef.device import attribute as device
from metadef.device.dlti import ATTRIBUTE, to_dlti
from metadef.pipeline import Pass


@dataclass(frozen=True)
class AttachDlti(Pass):
    """Write the device of `device.spec` as DLTI's target system, which upstream passes query.

    Before:
        module attributes {device.spec = #device.spec<{cores = 4 : i64, ..}>}
    After:
        module attributes {
          device.spec = #device.spec<{cores = 4 : i64, ..}>,
          dlti.target_system_spec = #dlti.target_system_spec<
            "CPU" = #dlti.target_device_spec<"max_vector_op_width" = 256, "cores" = 4, ..>>}
    """

    requires = "a module with the attribute device.spec"
    leaves = "the same with dlti.target_system_spec"

    def run(self, module: ir.Operation) -> None:
        with module.context:
            module.attributes[ATTRIBUTE] = to_dlti(device.of(module))
