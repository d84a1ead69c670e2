"""Bad input: each mistake is one clear error before native code runs, and nothing else."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch._subclasses import FakeTensorMode

import metadef
from metadef.cli import main as cli
from metadef.cli import opt
from metadef.cli.nesting import MOST_LEVELS
from metadef.diagnostics import DeviceError, InputError, MetadefError
from metadef.frontend.compiled_model import CompiledModel

X = torch.arange(8.0).reshape(2, 4)


def _double(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@pytest.fixture(scope="module")
def double() -> CompiledModel:
    return metadef.compile(_double, (X,), threads=1)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (torch.nested.nested_tensor([torch.ones(4), torch.ones(4)]), "got a nested tensor"),
        (X.to_sparse_csr(), "layout torch.sparse_csr"),
        (X.to(torch.complex64), "got dtype complex64"),
        (X.bfloat16(), "got dtype bfloat16"),
        (torch.quantize_per_tensor(X, 0.1, 0, torch.quint8), "got dtype quint8"),
        (X.numpy(), "got ndarray"),
        (None, "got NoneType"),
    ],
    ids=["nested", "csr", "complex", "bf16", "quantized", "numpy", "none"],
)
def test_arguments_that_are_no_dense_tensor(
    double: CompiledModel, value: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        double(value)


def test_a_tensor_whose_memory_was_freed(double: CompiledModel) -> None:
    freed = X.clone()
    freed.untyped_storage().resize_(0)
    with pytest.raises(InputError, match="none .its storage was freed"):
        double(freed)


def test_transforms_and_fake_modes_have_no_memory(double: CompiledModel) -> None:
    with pytest.raises(InputError, match="torch.func"):
        torch.vmap(double)(torch.ones(3, 2, 4))
    with pytest.raises(InputError, match="FakeTensorMode"), FakeTensorMode():
        double(X)
    assert torch.equal(double(X), X * 2)  # nothing fake stays behind


def test_the_default_device_is_no_place_for_outputs() -> None:
    with torch.device("meta"):
        model = metadef.compile(_double, (X,), threads=1)
        assert torch.equal(model(X), X * 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads: expected at least 1, got 0"),
        ({"threads": 10**30}, "threads: expected at most"),
        ({"threads": True}, "threads: expected an int, got bool"),
        ({"fallback": "torch"}, "fallback: expected 'eager' or 'error'"),
        ({"device": 3}, "device: expected a DeviceSpec, the path"),
        ({"kwargs": 3}, "kwargs: expected a dict, got int"),
        ({"dynamic_shapes": 5}, "torch.export refuses"),
    ],
)
def test_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(MetadefError, match=message):
        metadef.compile(_double, (X,), **options)


def test_device_files(tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text('{"name": ')
    with pytest.raises(DeviceError, match="expected JSON"):
        metadef.compile(_double, (X,), device=tmp_path / "spec.json")
    (tmp_path / "spec.json").write_text("[" * 100_000)
    with pytest.raises(DeviceError):
        metadef.compile(_double, (X,), device=tmp_path / "spec.json")


@pytest.mark.parametrize("copied", [pickle.dumps, copy.deepcopy, copy.copy])
def test_compiled_models_stay_in_their_process(
    double: CompiledModel, copied: Callable[[Any], Any]
) -> None:
    with pytest.raises(MetadefError, match="cannot be pickled or copied"):
        copied(double)


def _until_positive(x: torch.Tensor) -> torch.Tensor:
    while x.sum() < 0:
        x = x + 1
    return x


def test_one_tensor_given_twice_is_two_arguments() -> None:
    model = metadef.compile(lambda x, y: x - y, (X, X), threads=1)
    assert torch.equal(model(X * 3, X), X * 2)
    linear = torch.nn.Linear(4, 4, bias=False)
    of_weight = metadef.compile(linear, (linear.weight,), threads=1)
    torch.testing.assert_close(of_weight(torch.eye(4)), linear(torch.eye(4)).detach())


def test_models_that_torch_export_refuses() -> None:
    with pytest.raises(MetadefError, match="torch.export refuses _until_positive"):
        metadef.compile(_until_positive, (X,))


INDEX = torch.tensor([0, 1])
FAR = torch.tensor([2**62, -(2**62)])


@pytest.mark.parametrize(
    "function",
    [
        lambda x, i: torch.nn.functional.embedding(i, x),
        lambda x, i: x[i],
        lambda x, i: x.gather(0, i[:, None]),
        lambda x, i: x.index_select(0, i),
        lambda x, i: x.scatter(0, i[:, None], x * 2),
        lambda x, i: x.scatter_add(0, i[:, None], x * 2),
        lambda x, i: x.index_put((i,), x),
        lambda x, i: x.index_add(0, i, x),
    ],
    ids="embedding index gather index_select scatter scatter_add index_put index_add".split(),
)
def test_indices_out_of_range_touch_nothing_else(function: Callable[..., Any]) -> None:
    model = metadef.compile(function, (X, INDEX), threads=1)
    torch.testing.assert_close(model(X, INDEX), function(X, INDEX))
    kept = X.clone()
    assert model(X, FAR).shape == function(X, INDEX).shape
    assert torch.equal(X, kept)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int32, torch.int64])
def test_integer_division_does_not_trap(dtype: torch.dtype) -> None:
    def divide(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, ...]:
        trunc = torch.div(x, y, rounding_mode="trunc")
        return x // y, x % y, torch.fmod(x, y), trunc, x << y, x >> y

    ones = torch.ones(20, dtype=dtype)
    model = metadef.compile(divide, (ones, ones), threads=1)
    torch.testing.assert_close(model(ones * 7, ones * 2), divide(ones * 7, ones * 2))
    model(ones, ones * 0)
    model(ones * torch.iinfo(dtype).min, -ones)


def test_the_largest_of_nothing_is_an_error_as_in_torch() -> None:
    with pytest.warns(UserWarning, match="of no elements"):
        model = metadef.compile(lambda x: x.max() + 1, (torch.ones(0, 3),), threads=1)
    with pytest.raises(RuntimeError, match="numel"):
        model(torch.ones(0, 3))


def _opt(tmp_path: Path, text: str | bytes, *arguments: str) -> int:
    file = tmp_path / "in.mlir"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return opt.main([str(file), *(arguments or ("--canonicalize",))])


DEEP = MOST_LEVELS * 10


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("module {" * DEEP + "}" * DEEP, "levels of nesting"),
        ("module attributes {x.a = " + "[" * DEEP + "]" * DEEP + "} {}", "levels of nesting"),
        ("func.func private @f(" + "tuple<" * DEEP + ">" * DEEP + ")", "levels of nesting"),
        ("#m = affine_map<(d0) -> (" + "- " * DEEP + "d0)>", "levels of nesting"),
        ("#m = affine_map<(d0) -> (" + "d0 + " * DEEP + "d0)>", "levels of nesting"),
        (b"ML\xefRgarbage", "error:"),
        (b"\xff\xfe\x00", "error:"),
        ('func.func @f() { %0 = "metadef.weight"() {name = "\\FF"} : () -> tensor<4xf32> return }',
         "not UTF-8"),
        ('%0 = "metadef.nothing"() : () -> tensor<4xf32>', "unregistered operation"),
        ('%0 = "metadef.softmax"() : () -> tensor<4xf32>', "error:"),
    ],
    ids="modules arrays tuples minus plus bytecode binary utf8 unknown attributes".split(),
)  # fmt: skip
def test_malformed_mlir(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], text: str | bytes, message: str
) -> None:
    assert _opt(tmp_path, text) == 1
    assert message in capfd.readouterr().err


def test_nesting_that_the_parser_takes_passes(tmp_path: Path) -> None:
    text = "module {" * 200 + "}" * 200
    assert _opt(tmp_path, f'// "{"(" * DEEP}\n{text}') == 0
    functions = [f"func.func private @f{i}(tensor<4xf32>) -> f32" for i in range(MOST_LEVELS)]
    assert _opt(tmp_path, "\n".join(functions)) == 0


def test_passes_want_bodies(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    declaration = "func.func private @main(tensor<4xf32>) -> tensor<4xf32>"
    assert _opt(tmp_path, declaration, "--outline-kernels") == 1
    assert "'func.func' op: expected a body, got a declaration" in capfd.readouterr().err


def test_deep_pipelines(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = f"builtin.module({'func.func(' * DEEP}cse{')' * DEEP})"
    assert _opt(tmp_path, "module {}", f"--pass-pipeline={text}") == 2
    assert "nested too deeply" in capfd.readouterr().err


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 and no more"], ids=["empty", "cut"])
def test_damaged_model_files(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], content: bytes
) -> None:
    file = tmp_path / "model.pt2"
    file.write_bytes(content)
    assert cli.main(["check", str(file)]) == 1
    (line,) = capfd.readouterr().err.splitlines()
    assert "expected a file written by torch.export.save" in line
