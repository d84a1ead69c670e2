"""A device for tests of cost functions: two cores of a common machine, whatever runs them."""

from __future__ import annotations

from metadef.device.spec import Cache, DeviceSpec

DEVICE = DeviceSpec(
    name="test", kind="cpu", triple="x86_64-unknown-linux-gnu", cpu="", features="", cores=2,
    threads=2, vector_bits=256, vector_registers=16, instructions=(), memory_bytes=2**34,
    caches=(Cache(1, 2**15, 64, 1), Cache(2, 2**19, 64, 1), Cache(3, 2**25, 64, 2)),
    types=("f32",), alignment=64,
)  # fmt: skip
