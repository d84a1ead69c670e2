"""Runs two builds of a kernel on the same random data and compares them; a worker does this."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from metadef.runtime.elf import is_object_file
from metadef.runtime.linker import LinkedCode

Array = np.ndarray[Any, Any]

#: How far a float may be off, of its own size or the median of those that are not 0: sums in
#: another order differ by some roundings.
TOLERANCE = {"f64": 1e-11, "f32": 1e-4, "f16": 2e-2, "bf16": 1e-1}
_NUMPY = {"f64": "f8", "f32": "f4", "f16": "f2", "bf16": "u2", "i1": "u1", "index": "i8"}
#: indices are random up to here
_MOST_INTEGER = 8
_ALIGNMENT = 64


@ctypes.CFUNCTYPE(None)
def _alone() -> None:
    """Wait for the other threads, of which there are none."""


def difference(header: dict[str, Any], chosen: bytes, default: bytes) -> str | None:
    """Return how the results of two builds of a kernel differ, or None where they agree.

    `header` has `tensors`, the (element, dims) of inputs and outputs, the number of `inputs`, the
    values of `symbols`, and for both builds name, scratch bytes and tickets in `builds`.
    """
    rng = np.random.default_rng(0)
    tensors = [(element, tuple(dims)) for element, dims in header["tensors"]]
    count = header["inputs"]
    inputs = [_random(rng, element, dims) for element, dims in tensors[:count]]
    results = []
    for build, code in zip(header["builds"], (chosen, default), strict=True):
        outputs = [np.full(dims, 1, _dtype(element)) for element, dims in tensors[count:]]
        _run(code, build, [*(x.copy() for x in inputs), *outputs], header["symbols"])
        results.append(outputs)
    for n, ((element, _), got, wanted) in enumerate(zip(tensors[count:], *results, strict=True)):
        problem = _compared(element, got, wanted)
        if problem is not None:
            return f"result {n} {problem}"
    return None


def _run(code: bytes, build: dict[str, Any], arrays: Sequence[Array], symbols: list[int]) -> None:
    """Call a build on one thread."""
    library = _load(code)
    number, pointer = ctypes.c_int64, ctypes.c_void_p
    address = library.address(build["symbol"])
    assert address, f"no function '{build['symbol']}'"
    function = ctypes.CFUNCTYPE(None, pointer, pointer, pointer, number, number, pointer)(address)
    pointers = (pointer * len(arrays))(*(a.ctypes.data for a in arrays))
    values = (number * max(len(symbols), 1))(*symbols)
    memory = np.zeros(build["scratch"] + 2 * _ALIGNMENT, np.uint8)
    scratch = memory.ctypes.data + -memory.ctypes.data % _ALIGNMENT
    tickets = np.zeros((build["tickets"] + 1) * _ALIGNMENT // 8, np.int64)
    function(pointers, values, scratch, 0, 1, tickets.ctypes.data)


def _load(code: bytes) -> Any:
    if is_object_file(code):
        return LinkedCode([code], _address_of)
    from metadef.runtime.mcjit import LoadedCode

    return LoadedCode([code], _address_of)


def _address_of(symbol: str) -> int:
    function = _alone if symbol == "GOMP_barrier" else getattr(ctypes.CDLL(None), symbol)
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address


def _dtype(element: str) -> np.dtype[Any]:
    if element in _NUMPY:
        return np.dtype(_NUMPY[element])
    kind = "u" if element.startswith("ui") else "i"
    return np.dtype(f"{kind}{int(element.lstrip('ui')) // 8}")


def _random(rng: np.random.Generator, element: str, dims: tuple[int, ...]) -> Array:
    if element == "bf16":
        return (rng.standard_normal(dims, np.float32).view(np.uint32) >> 16).astype(np.uint16)
    if element in TOLERANCE:
        return rng.standard_normal(dims, np.float32).astype(_dtype(element))
    most = 2 if element == "i1" else _MOST_INTEGER
    return rng.integers(0, most, dims).astype(_dtype(element))


def _compared(element: str, got: Array, wanted: Array) -> str | None:
    if element not in TOLERANCE:
        wrong = int(np.count_nonzero(got != wanted))
        return f"differs from the default's in {wrong} of {got.size} places" if wrong else None
    if element == "bf16":
        got, wanted = ((a.astype(np.uint32) << 16).view(np.float32) for a in (got, wanted))
    a, b = got.astype(np.float64), wanted.astype(np.float64)
    finite = np.isfinite(b)
    if not np.array_equal(a[~finite], b[~finite], equal_nan=True):
        return "has other infinities or NaN than the default's"
    size = np.abs(b[finite])
    if not size.any():
        return None if np.array_equal(a[finite], b[finite]) else "is not 0, as the default's is"
    allowed = TOLERANCE[element] * np.maximum(size, np.median(size[size > 0]))
    apart = np.abs(a[finite] - b[finite])
    wrong = int(np.count_nonzero(~(apart <= allowed)))
    if not wrong:
        return None
    return f"is off the default's by up to {np.nanmax(apart):.3g} in {wrong} of {got.size} places"
