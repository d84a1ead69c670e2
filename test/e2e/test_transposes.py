"""Transposed copies and pointwise ops on transposed inputs: every tail of rows and lanes, exact."""

import pytest
import torch

import metadef


def _swap_relu(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x.transpose(-1, -2)) + 1


def _swap(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(-1, -2).contiguous()


@pytest.mark.parametrize(
    "shape", [(64, 64), (3, 100, 37), (8, 9), (17, 1), (1, 33), (7, 65), (5, 3)]
)
@pytest.mark.parametrize("model", [_swap, _swap_relu])
def test_every_tail(shape: tuple[int, ...], model: object) -> None:
    x = torch.randn(shape)
    assert callable(model)
    assert torch.equal(metadef.compile(model, (x,))(x), model(x))


@pytest.mark.parametrize(
    "dtype", [torch.float64, torch.bfloat16, torch.float16, torch.int8, torch.int64, torch.bool]
)
def test_dtypes(dtype: torch.dtype) -> None:
    x = (torch.randn(130, 70) * 100).to(dtype)
    assert torch.equal(metadef.compile(_swap, (x,))(x), _swap(x))


def test_symbolic_rows_and_columns() -> None:
    rows, columns = torch.export.Dim("rows", min=1), torch.export.Dim("columns", min=1)
    x = torch.randn(20, 30)
    compiled = metadef.compile(_swap, (x,), dynamic_shapes=({0: rows, 1: columns},))
    for shape in ((20, 30), (1, 1), (64, 64), (67, 129), (8, 3)):
        x = torch.randn(shape)
        assert torch.equal(compiled(x), _swap(x))


@pytest.mark.parametrize("features", [(7, 5), (32, 48), (100, 50), (768, 33)])
def test_weights_in_panels(features: tuple[int, int]) -> None:
    model = torch.nn.Linear(*features).eval()
    x = torch.randn(9, features[0])
    expected = torch.nn.Linear(*features).double()
    expected.load_state_dict({k: v.double() for k, v in model.state_dict().items()})
    # Sums of up to 768 float32 products of size one.
    torch.testing.assert_close(
        metadef.compile(model, (x,))(x).double(), expected(x.double()), rtol=1e-4, atol=1e-5
    )
