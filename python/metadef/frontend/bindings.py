"""What goes into a captured graph and what comes out, in terms of the model's call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from metadef.symbolic import Dim


@dataclass(frozen=True)
class Source:
    """Where the value of a placeholder comes from.

    argument: leaf `index` of the flattened call; weight: tensor `name` of the store, frozen;
    state: tensor `name` of the store, read at every call because the model writes to it.
    """

    kind: Literal["argument", "weight", "state"]
    index: int = -1
    name: str = ""


@dataclass(frozen=True)
class Output:
    """What one leaf of the model's result is.

    value: output `index` of the graph; argument: leaf `index` of the call itself; weight: tensor
    `name` of the store; size: the integer `dim`; constant: `constant` as it is.
    """

    kind: Literal["value", "argument", "weight", "size", "constant"]
    index: int = -1
    name: str = ""
    dim: Dim | None = None
    constant: Any = None


@dataclass(frozen=True)
class Mutation:
    """Output `value` of the graph is written back to an argument or to a tensor of the store."""

    value: Output
    target: Source
