"""A compiled model is found again by replaying its ops, and never taken for another."""

import math
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils import _pytree as pytree

import metadef
from metadef.diagnostics import InputError
from metadef.frontend.compiled_model import CompiledModel

X = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture(autouse=True)
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METADEF_CACHE_DIR", str(tmp_path))


def _was_exported(compiled: CompiledModel) -> bool:
    return {stage.name: stage.seconds for stage in compiled.report().stages}["export"] > 0


def _compile_twice(
    make: Callable[[], nn.Module], *args: Any, **kwargs: Any
) -> tuple[CompiledModel, nn.Module]:
    """Compile two models of one make; return the second compiled, and the second."""
    assert _was_exported(metadef.compile(make(), args, kwargs))
    model = make()
    return metadef.compile(model, args, kwargs), model


class _Scaled(nn.Module):
    def __init__(self, scale: Any = 2.0, function: Callable[..., torch.Tensor] = torch.relu):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.scale = scale
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(self.linear(x)) * self.scale


def test_a_model_that_does_the_same_is_not_exported_again() -> None:
    compiled, model = _compile_twice(_Scaled, X)
    assert not _was_exported(compiled)
    torch.testing.assert_close(compiled(X), model(X).detach())
    nodes = {stage.name: stage.nodes for stage in compiled.report().stages}
    assert nodes["export"] and nodes["import"]
    assert str(Path(__file__).name) in compiled.mlir("import")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"scale": 2.0}, {"scale": 3.0}),
        ({"scale": 2.0}, {"scale": 2}),
        ({"scale": torch.tensor([1.0, 2, 3, 4])}, {"scale": torch.tensor([1.0, 2, 3, 5])}),
        ({"function": torch.relu}, {"function": torch.tanh}),
        ({"function": lambda x: x.sum(0)}, {"function": lambda x: x.sum(1, keepdim=True)}),
    ],
)
def test_a_model_that_does_something_else_is_exported(
    first: dict[str, Any], second: dict[str, Any]
) -> None:
    metadef.compile(_Scaled(**first), (X,))
    model = _Scaled(**second)
    compiled = metadef.compile(model, (X,))
    assert _was_exported(compiled)
    torch.testing.assert_close(compiled(X), model(X).detach())


def test_constants_of_the_module_and_of_its_code_come_back() -> None:
    class Constants(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.arange(4.0)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            flags = torch.tensor([True, False, True, True])
            return torch.where(flags, x * self.table, torch.tensor(3, dtype=torch.bfloat16).item())

    compiled, model = _compile_twice(Constants, X)
    assert not _was_exported(compiled)
    torch.testing.assert_close(compiled(X), model(X))


def test_structured_arguments_and_results() -> None:
    @dataclass
    class Pair:
        first: torch.Tensor
        second: Any

    pytree.register_dataclass(Pair)

    class Structured(nn.Module):
        def forward(self, xs: dict[str, Any], *, factor: int, other: Any = None) -> Any:
            return Pair(xs["a"] * factor, {"n": factor, "none": other, "same": xs["a"]})

    compiled, _ = _compile_twice(Structured, {"a": X}, factor=3)
    assert not _was_exported(compiled)
    result = compiled({"a": X}, factor=3)
    assert isinstance(result, Pair)
    torch.testing.assert_close(result.first, X * 3)
    assert result.second["n"] == 3
    assert result.second["none"] is None
    assert result.second["same"] is X
    with pytest.raises(InputError, match="factor"):
        compiled({"a": X}, factor=4)


def test_a_buffer_that_the_model_writes_to_is_written() -> None:
    class Counting(nn.Module):
        count: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("count", torch.zeros(4))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.count.add_(x.sum(0))
            return x + self.count

    compiled, model = _compile_twice(Counting, X)
    assert not _was_exported(compiled)
    assert not model.count.any()
    torch.testing.assert_close(compiled(X), X + X.sum(0))
    torch.testing.assert_close(model.count, X.sum(0))


def test_a_tensor_kept_in_an_attribute_is_no_fake_one_afterwards() -> None:
    class Keeping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = torch.zeros(())
            self.calls = 0

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return x + self.calls

    class Assigning(Keeping):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.last = x * 2
            return x + 1

    model = Assigning()
    before = model.last
    metadef.compile(model, (X,))
    metadef.compile(model, (X,))
    assert model.last is before
    assert _was_exported(metadef.compile(Keeping(), (X,)))
    counting = Keeping()
    counting.calls = 1
    torch.testing.assert_close(metadef.compile(counting, (X,))(X), X + counting.calls)


def test_tied_weights_are_told_from_untied_ones() -> None:
    class Pair(nn.Module):
        def __init__(self, *, tied: bool) -> None:
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = self.a if tied else nn.Linear(4, 4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(self.a(x))

    for tied in (True, False, True):
        model = Pair(tied=tied)
        compiled = metadef.compile(model, (X,))
        torch.testing.assert_close(compiled(X), model(X).detach())


def test_strides_of_an_argument_take_part() -> None:
    class Flat(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.as_strided((12,), (1,))

    metadef.compile(Flat(), (X,))
    turned = X.t().contiguous().t()
    torch.testing.assert_close(metadef.compile(Flat(), (turned,))(turned), Flat()(turned))


def test_layers_with_weights_in_lists_of_their_own() -> None:
    x = torch.randn(5, 2, 4)
    compiled, model = _compile_twice(lambda: nn.LSTM(4, 3, num_layers=2), x)
    assert not _was_exported(compiled)
    torch.testing.assert_close(compiled(x)[0], model(x)[0].detach())


def test_a_fast_path_of_eager_mode_is_no_other_model() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    x = torch.randn(2, 3, 8)
    metadef.compile(layer, (x,))
    compiled = metadef.compile(layer, (x,))
    assert not _was_exported(compiled)
    torch.testing.assert_close(compiled(x), layer(x).detach(), rtol=1e-4, atol=1e-5)


def test_one_model_is_compiled_by_several_threads_at_once() -> None:
    model = nn.Sequential(*(_Scaled() for _ in range(20)))
    metadef.compile(model, (X,))
    expected = model(X).detach()
    with ThreadPoolExecutor(4) as executor:
        compiled = list(executor.map(lambda _: metadef.compile(model, (X,)), range(8)))
    for each in compiled:
        torch.testing.assert_close(each(X), expected)


def test_builtins_on_tensors_are_ops_when_replayed_too() -> None:
    class Clipped(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return max(min(x, 1.5), x * math.pow(2, 3)) + max(0, 1)

    compiled, _ = _compile_twice(Clipped, X)
    assert not _was_exported(compiled)
    torch.testing.assert_close(compiled(X), torch.maximum(X.clamp(max=1.5), X * 8) + 1)


_COMPILE_AND_RUN = """
import sys
import torch
import metadef
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.GELU(), torch.nn.LayerNorm(8)).eval()
x = torch.randn(3, 4)
result = metadef.compile(model, (x,))(x)
heavy = ("torch_mlir", "llvmlite.binding", "sympy", "torch._dynamo")
print(*(name for name in heavy if name in sys.modules))
torch.testing.assert_close(result, model(x).detach())
"""


def test_a_kept_model_needs_no_compiler_in_memory() -> None:
    command = [sys.executable, "-c", _COMPILE_AND_RUN]
    run = partial(subprocess.run, command, stdout=subprocess.PIPE, text=True, check=True)
    assert "torch_mlir" in run().stdout
    assert run().stdout.split() == []
