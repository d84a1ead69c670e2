"""A call of a compiled model: what is taken, and what each wrong argument is told."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim

from metadef.diagnostics import InputError
from metadef.frontend.export import export
from metadef.frontend.signature import Signature


class Nested(nn.Module):
    def forward(
        self,
        x: dict[str, tuple[torch.Tensor]],
        y: torch.Tensor,
        count: int,
        flag: Any = None,
        mask: Any = None,
    ) -> Any:
        return x["k"][0] + y.sum(), count


def _signature(module: nn.Module, args: Any, kwargs: Any = None, shapes: Any = None) -> Signature:
    exported = export(module, args, kwargs, shapes)
    return Signature(
        exported.in_spec, exported.examples, exported.graph.symbols, exported.parameters
    )


def _x(rows: int = 4, columns: int = 6) -> dict[str, tuple[torch.Tensor]]:
    return {"k": (torch.ones(rows, columns),)}


@pytest.fixture(scope="module")
def nested() -> Signature:
    batch = Dim("batch", max=64)
    return _signature(
        Nested(),
        (_x(), torch.ones(4, 8), 3),
        {"mask": torch.ones(2)},
        {"x": {"k": ({0: batch},)}, "y": {0: Dim.AUTO}, "count": None, "mask": None},
    )


Y, MASK = torch.ones(7, 8), torch.ones(2)


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((_x(), Y, 3), {"mask": MASK}),
        ((_x(), Y), {"count": 3, "mask": MASK}),
        ((_x(), Y), {"mask": MASK, "count": 3}),
        ((_x(), Y, 3, None, MASK), {}),
        ((_x(), Y, 3), {"mask": MASK, "flag": None}),
    ],
)
def test_takes_arguments_by_position_or_keyword(nested: Signature, args: Any, kwargs: Any) -> None:
    _, leaves, symbols = nested.bind(args, kwargs)
    assert symbols["batch"] == 4
    assert [type(leaf) for leaf in leaves] == [torch.Tensor, torch.Tensor, int, torch.Tensor]


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((_x(), Y), {"mask": MASK}, "argument 'count': missing"),
        ((_x(), Y, 3), {"masc": MASK}, r"argument 'masc': .*did you mean 'mask'"),
        ((_x(), Y, 3, None, MASK), {"mask": MASK}, "argument 'mask': expected it once"),
        (({"j": (Y,)}, Y, 3), {"mask": MASK}, r"args\[0\]\['k'\]\[0\]: missing"),
        ((_x(columns=7), Y, 3), {"mask": MASK}, r"args\[0\]\['k'\]\[0\]: dim 1: expected 6, got 7"),
        ((_x(100), Y, 3), {"mask": MASK}, r"dim 0: expected batch .* at most 64, got 100"),
        ((_x(), Y.double(), 3), {"mask": MASK}, r"args\[1\]: expected float32.*got dtype float64"),
        ((_x(), Y[0], 3), {"mask": MASK}, r"args\[1\]: .*got rank 1"),
        ((_x(), Y.to_sparse(), 3), {"mask": MASK}, r"args\[1\]: .*layout torch.sparse_coo"),
        ((_x(), Y.to("meta"), 3), {"mask": MASK}, r"args\[1\]: .*on cpu, got meta"),
        ((_x(), 2, 3), {"mask": MASK}, r"args\[1\]: .*got int"),
        ((_x(), Y, 4), {"mask": MASK}, r"args\[2\]: expected the constant 3 .*got 4"),
        ((_x(), Y, True), {"mask": MASK}, r"args\[2\]: expected the constant 3 .*got True"),
        ((_x(), Y, 3), {"mask": None}, r"kwargs\['mask'\]: expected float32\[2\], got NoneType"),
        ((_x(), Y, 3), {"mask": torch.ones(3)}, r"kwargs\['mask'\]: dim 0: expected 2 .*got 3"),
        ((_x(), Y, 3, 1, 2, 3), {}, r"argument 'flag': not among"),
    ],
)
def test_names_the_wrong_argument(nested: Signature, args: Any, kwargs: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        nested.bind(args, kwargs)


class Add(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x + y


def test_equal_symbols_must_have_equal_values() -> None:
    batch = Dim("batch")
    signature = _signature(
        Add(), (torch.ones(4, 2), torch.ones(4, 2)), None, {"x": {0: batch}, "y": {0: batch}}
    )
    assert signature.bind((torch.ones(5, 2), torch.ones(5, 2)), {})[2] == {"batch": 5}
    with pytest.raises(InputError, match=r"args\[1\]: dim 0: expected batch = 5 .*got 6"):
        signature.bind((torch.ones(5, 2), torch.ones(6, 2)), {})


def test_a_symbol_may_be_1_where_torch_promises_it() -> None:
    args = (torch.ones(4, 2), torch.ones(2))
    signature = _signature(Add(), args, None, {"x": {0: Dim("n", max=9)}, "y": None})
    assert signature.bind((torch.ones(1, 2), torch.ones(2)), {})[2] == {"n": 1}
    signature = _signature(Add(), args, None, {"x": {0: Dim("n", min=3)}, "y": None})
    with pytest.raises(InputError, match="n at least 3"):
        signature.bind((torch.ones(2, 2), torch.ones(2)), {})


def test_derived_dims_are_solved_and_checked() -> None:
    half = Dim("half", max=32)
    signature = _signature(Twice(), (torch.ones(8, 3),), None, {"x": {0: 2 * half}})
    (given, _, symbols) = signature.bind((torch.ones(10, 3),), {})
    assert list(symbols.values()) == [5] and given[0].shape == (10, 3)
    with pytest.raises(InputError, match=r"args\[0\]: dim 0: expected .*got 9"):
        signature.bind((torch.ones(9, 3),), {})


class Twice(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(-1, 2, 3).sum(1)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.ones(2, 4).t(),
        torch.ones(1, 2).expand(4, 2),
        torch.ones(8, 2)[::2],
        torch.ones(4, 2, requires_grad=True),
        nn.Parameter(torch.ones(4, 2)),
        torch.imag(torch.ones(4, 2, dtype=torch.complex64).conj()),
    ],
    ids=["transposed", "expanded", "strided", "requires-grad", "parameter", "negative-bit"],
)
def test_unusual_tensors_arrive_dense(tensor: torch.Tensor) -> None:
    signature = _signature(Add(), (torch.ones(4, 2), torch.ones(4, 2)))
    given, leaves, _ = signature.bind((tensor, torch.ones(4, 2)), {})
    assert given[0] is tensor
    assert leaves[0].is_contiguous() and not leaves[0].requires_grad and not leaves[0].is_neg()
    assert torch.equal(leaves[0], tensor.detach())


def test_rank_0_and_empty_tensors() -> None:
    signature = _signature(Add(), (torch.tensor(1.0), torch.ones(0, 3)))
    _, leaves, symbols = signature.bind((torch.tensor(2.0), torch.ones(0, 3)), {})
    assert leaves[0].shape == () and leaves[1].numel() == 0 and symbols == {}
