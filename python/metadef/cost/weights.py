"""What a product costs with its weights in f32, or in fewer bits that are widened when read.

The cycles of one core: weights stream from memory, or from the cache that holds all of a model's,
while sums are computed, so the slower of the two counts. A narrow weight takes two instructions
more for each vector, once for each register block of rows.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from metadef.cost.rates import bytes_a_cycle
from metadef.device.spec import DeviceSpec

F32_BYTES = 4
#: bytes of a weight
_BYTES = {"f32": F32_BYTES, "bf16": 2, "i8": 1}
#: Relative errors that a product's outputs, against the largest, are expected to get: half a unit
#: in the last place of bf16; half a step of i8, of which the largest weight of a channel has 127,
#: where weights are half as large as their largest. f16 is not there: it depends on the weights
#: whether it holds them.
ERRORS = {"bf16": 2.0**-9, "i8": 1 / 127}
#: vector instructions a cycle
_RATE = 2.0
_WIDENING = 2
#: less is not worth an error
_LEAST_GAIN = 0.1


@dataclass(frozen=True)
class Product:
    """`batch` products of `rows` rows each by [depth, outputs] weights of their own."""

    rows: int
    depth: int
    outputs: int
    batch: int = 1

    @property
    def weights(self) -> int:
        return self.batch * self.depth * self.outputs


def product_cycles(product: Product, type_: str, held: int, device: DeviceSpec) -> float:
    """Return the cost with weights of a type; in f32 the model's would be `held` bytes."""
    size = _BYTES[type_]
    vectors = product.weights / (device.vector_bits / (8 * F32_BYTES))
    blocks = -(-product.rows // _block_rows(device))
    widening = 0 if size == F32_BYTES else _WIDENING * blocks
    arithmetic = vectors * (product.rows + widening) / _RATE
    rate = bytes_a_cycle(device, held * size // F32_BYTES)
    return max(arithmetic, product.weights * size / rate)


def cheapest_type(product: Product, held: int, device: DeviceSpec, allowed: Collection[str]) -> str:
    """Return the type, of f32 and those allowed, with which a product costs least."""
    least = product_cycles(product, "f32", held, device) * (1 - _LEAST_GAIN)
    costs = {type_: product_cycles(product, type_, held, device) for type_ in allowed}
    best = min(costs, key=lambda type_: costs[type_], default="f32")
    return best if costs and costs[best] < least else "f32"


def _block_rows(device: DeviceSpec) -> int:
    """Return the rows of a register block that is two vectors wide."""
    return max(1, (device.vector_registers - 4) // 2)
