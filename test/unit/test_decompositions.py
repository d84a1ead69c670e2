"""Our own decompositions, run by torch: special functions against mpmath, others against torch."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath as mp
import pytest
import torch
from torch import Tensor

from metadef.frontend.composite_ops import COMPOSITE_OPS
from metadef.frontend.decompositions import decomposition_table
from metadef.frontend.special_functions import SPECIAL_FUNCTIONS

aten = torch.ops.aten

#: both sides of each place where a fit ends
POSITIVE = [1e-20, 1e-3, 0.4, 1.0, 1.999, 2.0, 2.001, 5.6, 7.999, 8.0, 8.001, 20.0, 80.0]
REAL = [-x for x in POSITIVE] + POSITIVE

# mpmath's functions with torch's names
REFERENCES: dict[Any, tuple[Callable[[Any], Any], list[float]]] = {
    aten.i0: (lambda x: mp.besseli(0, x), REAL),
    aten.special_i0e: (lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), REAL),
    aten.special_i1: (lambda x: mp.besseli(1, x), REAL),
    aten.special_i1e: (lambda x: mp.besseli(1, x) * mp.exp(-abs(x)), REAL),
    aten.special_modified_bessel_k0: (lambda x: mp.besselk(0, x), POSITIVE),
    aten.special_modified_bessel_k1: (lambda x: mp.besselk(1, x), POSITIVE),
    aten.special_scaled_modified_bessel_k0: (lambda x: mp.besselk(0, x) * mp.exp(x), POSITIVE),
    aten.special_scaled_modified_bessel_k1: (lambda x: mp.besselk(1, x) * mp.exp(x), POSITIVE),
    aten.special_bessel_j0: (lambda x: mp.besselj(0, x), REAL),
    aten.special_bessel_j1: (lambda x: mp.besselj(1, x), REAL),
    aten.special_bessel_y0: (lambda x: mp.bessely(0, x), POSITIVE),
    aten.special_bessel_y1: (lambda x: mp.bessely(1, x), POSITIVE),
    aten.special_spherical_bessel_j0: (lambda x: mp.sin(x) / x, REAL),
    aten.special_erfcx: (lambda x: mp.erfc(x) * mp.exp(x * x), [-5.0, -0.5, *POSITIVE]),
    aten.special_ndtri: (
        lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1),
        [1e-7, 0.011, 0.0112, 0.3, 0.6, 0.98],
    ),
}


@pytest.mark.parametrize("op", REFERENCES, ids=lambda op: op.__name__)
def test_special_functions_round_the_right_value(op: Any) -> None:
    function, values = REFERENCES[op]
    x = torch.tensor(values)
    with mp.workdps(40):
        expected = torch.tensor([float(function(mp.mpf(v))) for v in x.tolist()]).double()
    got = SPECIAL_FUNCTIONS[op.default](x)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.double(), expected, rtol=1.2e-7, atol=1e-11)


@pytest.mark.parametrize("n", range(1, 6))
def test_polygamma_on_both_sides_of_its_poles(n: int) -> None:
    x = torch.tensor([-7.3, -2.5, -0.1, 0.3, 0.5, 1.0, 9.7, 200.0])
    with mp.workdps(40):
        expected = torch.tensor([float(mp.polygamma(n, mp.mpf(v))) for v in x.tolist()])
    got = SPECIAL_FUNCTIONS[aten.polygamma.default](n, x)
    torch.testing.assert_close(got, expected, rtol=2e-7, atol=0)


def test_special_functions_of_double_precision_stay_with_torch() -> None:
    assert SPECIAL_FUNCTIONS[aten.i0.default](torch.ones(2, dtype=torch.float64)) is NotImplemented
    assert (
        SPECIAL_FUNCTIONS[aten.i0.default](torch.ones(2, dtype=torch.int64)).dtype == torch.float32
    )


@pytest.mark.parametrize(
    ("op", "edges"),
    [
        (aten.special_modified_bessel_k0, {0.0: math.inf, -1.0: math.nan}),
        (aten.special_modified_bessel_k1, {0.0: math.inf, -1.0: math.nan}),
        (aten.special_bessel_y0, {0.0: -math.inf, -1.0: math.nan}),
        (aten.special_bessel_y1, {0.0: -math.inf, -1.0: math.nan}),
        (aten.special_spherical_bessel_j0, {0.0: 1.0, math.inf: 0.0}),
        (aten.special_erfcx, {math.inf: 0.0, -math.inf: math.inf}),
        (aten.special_ndtri, {0.0: -math.inf, 1.0: math.inf, 2.0: math.nan}),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_special_functions_at_the_ends_of_their_domains(op: Any, edges: dict[float, float]) -> None:
    got = SPECIAL_FUNCTIONS[op.default](torch.tensor([*edges, math.nan]))
    expected = torch.tensor([*edges.values(), math.nan])
    torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)


def same(op: Any, *args: Any, **kwargs: Any) -> None:
    """Compare a decomposition with the op itself."""
    expected = op(*args, **kwargs)
    torch.testing.assert_close(COMPOSITE_OPS[op](*args, **kwargs), expected, equal_nan=True)


def test_frexp_of_denormals_and_powers_of_two() -> None:
    values = [0.0, -0.0, 1.0, -2.0, 0.5, 0.99999994, 1e-45, -3e38, 1.17e-38, 7.3, math.nan]
    same(aten.frexp.Tensor, torch.tensor(values))


@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("dim", [0, -1])
def test_mode_is_the_smallest_of_the_most_frequent(dim: int, keepdim: bool) -> None:
    x = torch.randint(4, (6, 9), generator=torch.Generator().manual_seed(0)).float()
    x[2] = math.nan
    values, indices = COMPOSITE_OPS[aten.mode.default](x, dim, keepdim)
    torch.testing.assert_close(values, torch.mode(x, dim, keepdim)[0], equal_nan=True)
    wide = indices if keepdim else indices.unsqueeze(dim)
    found = x.gather(dim, wide)
    torch.testing.assert_close(found if keepdim else found.squeeze(dim), values, equal_nan=True)


@pytest.mark.parametrize("p", [0.0, 1.0, 2.0, 3.5, math.inf])
def test_pdist(p: float) -> None:
    same(aten._pdist_forward.default, torch.randn(7, 3), p)
    same(aten._pdist_forward.default, torch.randn(1, 3), p)


def test_embedding_renorm_touches_only_rows_that_are_read() -> None:
    weight, indices = torch.randn(6, 4) * 3, torch.tensor([[0, 2], [2, 5]])
    got = COMPOSITE_OPS[aten.embedding_renorm.default](weight, indices, 1.5, 2.0)
    expected = torch.embedding_renorm_(weight.clone(), indices, 1.5, 2.0)
    torch.testing.assert_close(got, expected)


@pytest.mark.parametrize("size", [0, 3, 30])
def test_nonzero_static(size: int) -> None:
    x = torch.tensor([[0.0, 1.0, 2.0], [3.0, 0.0, 0.0]])
    same(aten.nonzero_static.default, x, size=size, fill_value=-7)


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("padding", [0, 1, 2])
@pytest.mark.parametrize("interpolation", [0, 1])
def test_grid_sampler_3d(interpolation: int, padding: int, align_corners: bool) -> None:
    x: Tensor = torch.randn(2, 3, 4, 1, 6)
    grid = torch.randn(2, 3, 2, 5, 3) * 1.5
    same(aten.grid_sampler_3d.default, x, grid, interpolation, padding, align_corners)


def test_the_table_has_them() -> None:
    table = decomposition_table()
    assert {*SPECIAL_FUNCTIONS, *COMPOSITE_OPS} <= set(table)
    assert aten.linalg_inv.default not in table
    assert aten.linalg_det.default in table
