"""Compiles one sample, runs it, compares it with eager, and says how that went."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree

import metadef
from metadef.diagnostics import InputError, MetadefError

from .cases import Case, Sample, double, samples
from .exclusions import NOT_COMPARED, PLACES

#: from the best to the worst. eager: torch runs some of it; refused: torch.export takes none of it
KINDS = ("native", "linalg", "eager", "refused", "timeout", "error", "wrong", "crash")

#: our error may be this many times eager's own, plus `SLACK` roundings of the largest value
FACTOR = 4.0
SLACK = 4

#: the source line in a message
_PLACE = re.compile(r""" ?\(from "[^"]*":\d+:\d+\)|;? from "?[^" ]*"?:\d+(:\d+)?""")


@dataclass(frozen=True)
class Verdict:
    """How an op fared (one of `KINDS`), and why where that is not native."""

    kind: str
    why: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.why}" if self.why else self.kind


def judge(case: Case, limit: int) -> Verdict:
    """Return the worst verdict over at most `limit` samples of a case."""
    compare, places = case.op not in NOT_COMPARED, case.op in PLACES
    return worst(judge_sample(sample, compare, places) for sample in samples(case, limit))


def worst(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the first of the worst verdicts."""
    found = list(verdicts)
    if not found:
        return Verdict("native", "no sample of moderate size")
    return max(found, key=lambda verdict: KINDS.index(verdict.kind))


def judge_sample(sample: Sample, compare: bool = True, places: bool = False) -> Verdict:
    """Return how one call of an op fares; `places`: result 1 are indices of any equal elements."""
    indexed = sample.tensors[0] if places else None
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        eager = _call(sample.module, sample.tensors)
        exact = _in_double(sample)
        try:
            compiled = metadef.compile(sample.module, _copies(sample.tensors), threads=1)
        except MetadefError as error:
            refused = str(error).startswith(("torch.export refuses", "cannot decompose"))
            return Verdict("refused" if refused else "error", first_line(error))
        except Exception as error:
            return Verdict("error", first_line(error))
        try:
            ours = _call(compiled, sample.tensors)
            difference = _difference(ours, eager, exact, compare, indexed)
        except InputError as error:
            return Verdict("refused", first_line(error))
        except Exception as error:
            if _fails_by_itself(sample):
                return Verdict("refused", f"fails as torch.export has it: {first_line(error)}")
            return Verdict("error", first_line(error))
    if difference:
        return Verdict("wrong", difference)
    fallbacks = compiled.report().fallbacks
    if fallbacks:
        return Verdict("eager", "; ".join(sorted({f"{v.op}: {v.reason}" for v in fallbacks})))
    via_linalg = any("opaque" in kernel.ops for kernel in compiled.kernels)
    return Verdict("linalg" if via_linalg else "native")


def _fails_by_itself(sample: Sample) -> bool:
    """Say whether what torch.export makes of the sample fails without us."""
    program = torch.export.export(sample.module, _copies(sample.tensors), strict=False)
    try:
        program.module()(*_copies(sample.tensors))
    except Exception:
        return True
    return False


def _call(function: Callable[..., Any], tensors: Sequence[Tensor]) -> tuple[Any, list[Tensor]]:
    """Call a function on copies; return its result, and the copies: it may have changed them."""
    copies = _copies(tensors)
    return function(*copies), copies


def _copies(tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Return copies that are the same views of storage of their own."""
    return tuple(_copy(t) if t.layout is torch.strided else t.clone() for t in tensors)


def _copy(tensor: Tensor) -> Tensor:
    storage = tensor.untyped_storage().clone()
    place = (tensor.storage_offset(), tensor.size(), tensor.stride())
    return torch.empty(0, dtype=tensor.dtype).set_(storage, *place)


def first_line(error: Exception) -> str:
    """Return the first line of what an exception says, without the places of files."""
    text = str(error).strip().splitlines()
    first = _PLACE.sub("", text[0])[:300] if text else ""
    return first if isinstance(error, MetadefError) else f"{type(error).__name__}: {first}"


def _difference(
    ours: Any, eager: Any, exact: list[Any] | None, compare: bool, indexed: Tensor | None
) -> str:
    """Return how our result differs from what it may be, or ''.

    With `indexed`, result 1 may be any places where `indexed` has the values of result 0.
    """
    got, structure = pytree.tree_flatten(ours)
    if isinstance(eager[0], torch.Size):
        eager = (tuple(eager[0]), eager[1])  # what torch.export makes of it
    expected, expected_structure = pytree.tree_flatten(eager)
    if structure != expected_structure:
        return f"structure {structure}, eager {expected_structure}"
    for i, (x, y) in enumerate(zip(got, expected, strict=True)):
        if not isinstance(y, Tensor) or not isinstance(x, Tensor):
            if type(x) is not type(y) or (compare and x != y):
                return f"result {i} is {x!r}, eager {y!r}"
        elif (x.dtype, x.shape) != (y.dtype, y.shape):
            return f"result {i} is {_kind(x)}, eager {_kind(y)}"
    if not compare:
        return ""
    if exact is None or len(exact) != len(expected):
        exact = [None] * len(expected)
    for i, (x, y, z) in enumerate(zip(got, expected, exact, strict=True)):
        if isinstance(y, Tensor) and (text := _tensors_differ(x, y, z)):
            if i == 1 and indexed is not None and _are_places(x, got[0], indexed):
                continue
            return f"result {i}: {text}"
    return ""


def _are_places(indices: Tensor, values: Tensor, x: Tensor) -> bool:
    """Say whether there is a dim of x along which `indices` are places of `values`."""
    if x.ndim == 0:
        return not bool(indices.any())
    for dim in range(x.ndim):
        wide = [t if t.ndim == x.ndim else t.unsqueeze(dim) for t in (indices, values)]
        fits = all(
            i == dim or n == m for i, (n, m) in enumerate(zip(wide[0].shape, x.shape, strict=True))
        )
        inside = bool(((wide[0] >= 0) & (wide[0] < x.shape[dim])).all())
        if fits and inside and _same(x.gather(dim, wide[0]), wide[1]):
            return True
    return False


def _kind(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _in_double(sample: Sample) -> list[Any] | None:
    """Return the leaves of eager's result in double precision, or None where torch refuses."""
    try:
        tensors = [double(t) for t in sample.tensors]
        return pytree.tree_leaves((sample.in_double(*tensors), tensors))
    except Exception:
        return None


def _same(x: Tensor, y: Tensor) -> bool:
    """Say whether two tensors have the same elements, bit for bit or both NaN."""
    if x.layout is not torch.strided:
        return True
    if x.is_complex():
        x, y = (torch.view_as_real(t.resolve_conj()) for t in (x, y))
    return bool(((x == y) | ((x != x) & (y != y))).all())


def _tensors_differ(x: Tensor, y: Tensor, exact: Any) -> str:
    if _same(x, y):
        return ""
    if not y.is_floating_point() or not _is_reference(exact, y):
        try:
            torch.testing.assert_close(x, y, equal_nan=True)
        except AssertionError as error:
            return " ".join(str(error).split())[:200]
        return ""
    ordinary = torch.isfinite(y)
    if not _same(x[~ordinary], y[~ordinary]):
        return "NaNs or infinities in other places"
    ordinary &= torch.isfinite(exact)
    error, own, size = (t[ordinary].double() for t in (x - exact, y - exact, exact))
    if not size.numel():
        return ""
    largest = float(size.abs().max().clamp(min=torch.finfo(torch.float32).tiny))
    ours, theirs = float(error.abs().max()) / largest, float(own.abs().max()) / largest
    if ours <= FACTOR * theirs + SLACK * torch.finfo(y.dtype).eps:
        return ""
    return f"relative error {ours:.1e}, eager's own {theirs:.1e}"


def _is_reference(exact: Any, y: Tensor) -> bool:
    return isinstance(exact, Tensor) and exact.dtype == torch.float64 and exact.shape == y.shape
