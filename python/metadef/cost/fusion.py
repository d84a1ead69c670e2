"""What a chain of elementwise ops costs in its neighbour's kernel, and in one of its own.

In cycles of all cores together. Apart, the value between the two is written once and read again, at
the rate of the nearest cache that holds it, and the cores wait for one more dispatch. Fused, it
stays in registers or in a tile of rows; what that costs depends on where the chain is:

- behind it (an epilogue) it takes registers from the sums of a block, which are spilled for it;
- before ops that read an element some number of times (a prologue) it is computed that often;
- before a product, rows of the chain and of the product share loops. The product is then not cut
  for the caches: the other operand passes by once for each box of few rows, and only boxes of rows
  are shared out.

What both ways cost alike is left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from metadef.cost.rates import bytes_a_cycle
from metadef.device.spec import DeviceSpec

#: what one more dispatch and its barrier take each core
_DISPATCH = 1000.0
#: vector instructions a cycle
_RATE = 2.0
#: registers that a block of sums leaves to its operands
_SPARE_REGISTERS = 4
#: Panels of the other operand are fetched ahead, while products are summed: so much is waited for.
_WAITED = 0.5
#: register blocks of rows in a box: with a chain before the product, and without one
_BLOCKS_FUSED, _BLOCKS_APART = 4, 24


@dataclass(frozen=True)
class Chain:
    """Elementwise ops at an edge of a kernel.

    `bytes` has the value between the two, and `read_bytes` what the chain reads for it, or what it
    reads beside it; `flops` is the arithmetic for all of its elements, of `element_bytes` each.
    The chain needs `registers` at once. `stored`: others read the value too, so that it is written
    in any case.
    """

    bytes: int
    read_bytes: int
    flops: float
    registers: int = 1
    element_bytes: int = 4
    stored: bool = False


@dataclass(frozen=True)
class Rows:
    """`batch` products, whose rows come from a chain: `rows` of `depth` each, by another operand of
    `other_bytes`, `outputs` wide."""

    batch: int
    rows: int
    depth: int
    outputs: int
    other_bytes: int


def epilogue_pays(chain: Chain, device: DeviceSpec) -> bool:
    """Tell whether a chain costs less behind the sums of a kernel than apart.

    Spilled are at most all the sums, once: no more than apart, so that without further terms the
    answer is yes. It is asked all the same, as a device's figures decide.
    """
    sums = max(1, device.vector_registers - _SPARE_REGISTERS)
    spilled = min(1.0, max(0, chain.registers - _SPARE_REGISTERS) / sums)
    fused = 2 * chain.bytes * spilled / bytes_a_cycle(device, 0)
    return fused < _apart(chain, 1, device)


def prologue_pays(chain: Chain, readers: float, device: DeviceSpec) -> bool:
    """Tell whether a chain whose value is read `readers` times costs less computed each time."""
    lanes = device.vector_bits / (8 * chain.element_bytes)
    again = (readers - 1) * (
        chain.flops / (lanes * _RATE) + chain.read_bytes / bytes_a_cycle(device, chain.read_bytes)
    )
    return again < _apart(chain, readers, device)


def rows_pay(chain: Chain, product: Rows, device: DeviceSpec) -> bool:
    """Tell whether a chain costs less in the loops over the rows of a product that reads it."""
    lanes = device.vector_bits / (8 * chain.element_bytes)
    block = max(1, (device.vector_registers - _SPARE_REGISTERS) // 2)
    rows = max(1, product.batch * product.rows)
    arithmetic = rows * product.depth * product.outputs / (lanes * _RATE)
    boxes, blocked = (
        max(1, product.batch * -(-product.rows // (block * blocks)))
        for blocks in (_BLOCKS_FUSED, _BLOCKS_APART)
    )
    idle = -(-boxes // device.cores) * device.cores / boxes - 1
    passing = (boxes - blocked) * product.other_bytes
    panels = _WAITED * passing / bytes_a_cycle(device, product.other_bytes)
    near = 2 * chain.bytes / bytes_a_cycle(device, chain.bytes // boxes)
    return idle * arithmetic + panels + near < _apart(chain, 1, device)


def _apart(chain: Chain, readers: float, device: DeviceSpec) -> float:
    """Return the cost of a kernel of the chain's own: the value is written, unless it is so in any
    case, and read."""
    times = readers if chain.stored else readers + 1
    moved = times * chain.bytes / bytes_a_cycle(device, chain.bytes)
    return _DISPATCH * device.cores + moved
