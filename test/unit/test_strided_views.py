"""`as_strided`: what is read, and which arguments a compiled model takes for it.

Values are moved, never computed with, or computed with exactly: they have to be equal.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import metadef
from metadef.diagnostics import InputError, MetadefError

ROWS = torch.arange(12.0).reshape(3, 4)
COLUMNS = torch.arange(12.0).reshape(4, 3).t()
LATER = torch.arange(40.0)[4:16].view(3, 4)
GAPS = torch.arange(24.0).reshape(3, 8)[:, :4]


def argument(x: Tensor) -> Tensor:
    return x.as_strided((3, 2), (1, 1))


def result(x: Tensor) -> Tensor:
    return (x + 1).as_strided((3, 2), (1, 1))


def view(x: Tensor) -> Tensor:
    return x[1:].as_strided((3, 2), (1, 1))


def given_offset(x: Tensor) -> Tensor:
    return x.as_strided((3, 2), (1, 1), 4)


def gaps(x: Tensor) -> Tensor:
    return x.as_strided((3, 2), (8, 5))


def scattered(x: Tensor) -> Tensor:
    return torch.as_strided_scatter(x + 1, torch.zeros(2, 2), (2, 2), (1, 3))


def _compile(model: Callable[..., Any], example: Tensor, dynamic: Any = None) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch runs some of it
        return metadef.compile(model, (example,), dynamic_shapes=dynamic)


@pytest.mark.parametrize(
    ("model", "example"),
    [
        (argument, ROWS),
        (argument, COLUMNS),
        (result, ROWS),
        (result, COLUMNS),
        (view, ROWS),
        (given_offset, LATER),
        (gaps, GAPS),
        (scattered, COLUMNS),
    ],
)
def test_reads_memory_as_the_example_lies(model: Callable[..., Any], example: Tensor) -> None:
    assert torch.equal(_compile(model, example)(example), model(example))


@pytest.mark.parametrize("model", [argument, result, view, scattered])
@pytest.mark.parametrize(
    ("example", "other", "words"),
    [
        (ROWS, COLUMNS, r"strides \[4, 1\], got \[1, 3\]"),
        (COLUMNS, ROWS, r"strides \[1, 3\], got \[4, 1\]"),
    ],
)
def test_other_strides_are_refused(
    model: Callable[..., Any], example: Tensor, other: Tensor, words: str
) -> None:
    compiled = _compile(model, example)
    with pytest.raises(InputError, match=rf"^argument args\[0\]: expected {words}.*as_strided"):
        compiled(other)


def test_an_offset_counts_only_where_the_model_gives_one() -> None:
    assert torch.equal(_compile(argument, ROWS)(LATER), argument(LATER))
    with pytest.raises(InputError, match=r"expected storage offset 4, got 0"):
        _compile(given_offset, LATER)(ROWS)


def test_the_stride_of_one_element_does_not_count() -> None:
    compiled = _compile(argument, torch.ones(1, 4))
    same = torch.arange(4.0).as_strided((1, 4), (1, 1))
    assert torch.equal(compiled(same), argument(same))


def test_strides_of_an_argument_that_is_not_read_by_strides_are_free() -> None:
    def model(x: Tensor, y: Tensor) -> Tensor:
        return argument(x) + y[:, :2]

    compiled = metadef.compile(model, (ROWS, ROWS))
    assert torch.equal(compiled(ROWS, COLUMNS), model(ROWS, COLUMNS))


@pytest.mark.parametrize("model", [argument, result, scattered])
@pytest.mark.parametrize("example", [ROWS, COLUMNS])
def test_dynamic_dims(model: Callable[..., Any], example: Tensor) -> None:
    compiled = _compile(model, example, ({1: torch.export.Dim("B", min=2, max=64)},))
    wider = torch.arange(18.0)
    rows, columns = wider.view(3, 6), wider.view(6, 3).t()
    right, wrong = (rows, columns) if example is ROWS else (columns, rows)
    assert torch.equal(compiled(right), model(right))
    with pytest.raises(InputError, match="strides"):
        compiled(wrong)


def test_weights_are_read_with_their_own_strides() -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(COLUMNS)
            self.register_buffer("gaps", GAPS)

        def forward(self, x: Tensor) -> Tensor:
            return argument(self.weight) + gaps(self.gaps) + x

    model, x = Model().eval(), torch.zeros(3, 2)
    assert torch.equal(_compile(model, x)(x), model(x))


@pytest.mark.parametrize("model", [argument, result, view, given_offset, scattered])
def test_dynamo_compiles_again_for_other_strides(model: Callable[..., Any]) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(model, backend="metadef")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for x in (ROWS, COLUMNS, ROWS):
            assert torch.equal(compiled(x), model(x))


def test_dynamo_knows_no_offsets() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(given_offset, backend="metadef")
    assert torch.equal(compiled(ROWS), given_offset(ROWS))
    with pytest.raises(MetadefError, match="expected storage offset 0, got 4"):
        compiled(LATER)


def test_training_reads_what_forward_left() -> None:
    def model(x: Tensor) -> Tensor:
        kept = (2 * x.t()).as_strided((4, 2), (1, 1))
        return kept * kept

    def gradient(function: Callable[..., Any]) -> Tensor:
        x = ROWS.clone().requires_grad_()
        function(x).sum().backward()
        assert x.grad is not None
        return x.grad

    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        got = gradient(torch.compile(model, backend="metadef"))
    assert torch.equal(got, gradient(model))
