"""How many instructions a register block takes for each product that it adds to its sums.

With three operands to an instruction and scalars that are spread over the lanes as they are loaded,
rows and vectors of a block cost the same, and the units for products are busy before what is issued
beside them counts. SSE has neither, and there the issue of instructions is what limits:

    products = rows * vectors
    arithmetic = 2 * products
    loads = panels * vectors + cells * products + 2 * scalars * rows
    copies = products - (rows + vectors - 1), none if one operand of each product is its own

A product overwrites an operand: a loaded one that nothing reads any more, or else a copy.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Inputs:
    """How many inputs of a product move with the lanes alone, with the rows alone (so that they are
    one value for all lanes), and with both."""

    panels: int
    scalars: int
    cells: int


def instructions_per_product(rows: int, vectors: int, inputs: Inputs) -> float:
    """Return the instructions for each vector of products, on a device that overwrites operands."""
    products = rows * vectors
    loads = inputs.panels * vectors + inputs.cells * products + 2 * inputs.scalars * rows
    copies = 0 if inputs.cells else products - (rows + vectors - 1)
    return (2 * products + loads + copies) / products
