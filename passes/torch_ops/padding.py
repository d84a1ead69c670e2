"""Padding of the last dims."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from metadef import ir

from . import build
from .build import (
    rank,
)
from .call import Call
from .registry import NotModelled, converts


@converts("aten.constant_pad_nd")
def constant_pad(call: Call, x: ir.Value, padding: Sequence[int], value: Any) -> ir.Value:
    return pad_last(x, padding, "constant", value)


def pad_last(x: ir.Value, padding: Sequence[Any], mode: str, value: Any = 0) -> ir.Value:
    """Pad by torch's list: (low, high) of the last dim, then of the one before it."""
    if not all(isinstance(p, int) for p in padding) or not isinstance(value, int | float):
        raise NotModelled
    low, high = [0] * rank(x), [0] * rank(x)
    for i in range(len(padding) // 2):
        low[-1 - i], high[-1 - i] = padding[2 * i], padding[2 * i + 1]
    return build.pad(x, low, high, mode, value)


def _register_pad(torch_name: str, mode: str) -> None:
    @converts(*(f"aten.{torch_name}{n}d" for n in (1, 2, 3)))
    def convert(call: Call, x: ir.Value, padding: Sequence[int]) -> ir.Value:
        return pad_last(x, padding, mode)


_register_pad("reflection_pad", "reflect")
_register_pad("replication_pad", "replicate")


@converts("aten.pad")
def pad(
    call: Call, x: ir.Value, padding: Sequence[int], mode: str, value: float | None
) -> ir.Value:
    return pad_last(x, padding, mode, value or 0)


@converts("aten._pad_circular")
def pad_circular(call: Call, x: ir.Value, padding: Sequence[int]) -> ir.Value:
    return pad_last(x, padding, "circular")
