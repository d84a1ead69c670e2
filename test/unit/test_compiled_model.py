"""A compiled model is called like the model: pytrees, mutations, sharing, symbols, options."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.export import Dim
from torch.multiprocessing.reductions import StorageWeakRef

import metadef
from metadef.device.probe import probe
from metadef.diagnostics import InputError, MetadefError
from metadef.frontend import compiler
from metadef.frontend.stages import stage_text


class Everything(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(4.0))
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: dict[str, torch.Tensor], n: int, scale: Any = None) -> dict[str, Any]:
        self.count.add_(1)
        y = x["a"] * self.weight
        if scale is not None:
            y = y * scale
        return {"y": y, "pair": (y + 1, None), "x": x["a"], "n": n, "w": self.weight}


def test_results_have_the_models_structure() -> None:
    model = Everything()
    x = {"a": torch.randn(3, 4)}
    compiled = metadef.compile(model, (x, 5), {"scale": torch.tensor(2.0)})
    got = compiled(x, n=5, scale=torch.tensor(2.0))
    expected = x["a"] * model.weight.detach() * 2
    torch.testing.assert_close(got["y"], expected)
    torch.testing.assert_close(got["pair"][0], expected + 1)
    assert got["pair"][1] is None and got["n"] == 5
    assert got["x"] is x["a"] and torch.equal(got["w"], model.weight)


def test_buffers_are_written_back() -> None:
    model = Everything()
    x = {"a": torch.ones(1, 4)}
    compiled = metadef.compile(model, (x, 1))
    before = model.count.item()
    compiled(x, 1)
    compiled(x, 1)
    assert model.count.item() == before + 2


def test_arguments_are_written_back() -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        x.mul_(2)
        return y

    compiled = metadef.compile(model, (torch.ones(3),))
    x = torch.tensor([1.0, 2.0, 3.0])
    y = compiled(x)
    assert x.tolist() == [2.0, 4.0, 6.0] and y.tolist() == [1.0, 2.0, 3.0]


def test_batch_norm_in_training_updates_its_statistics() -> None:
    torch.manual_seed(0)
    model, twin = nn.BatchNorm1d(3), nn.BatchNorm1d(3)
    x = torch.randn(8, 3)
    compiled = metadef.compile(model, (x,))
    torch.testing.assert_close(compiled(x), twin(x))
    torch.testing.assert_close(model.running_var, twin.running_var)
    assert model.num_batches_tracked == twin.num_batches_tracked


def test_instance_norm_in_training_updates_its_statistics() -> None:
    torch.manual_seed(0)
    model, twin = (nn.InstanceNorm1d(3, track_running_stats=True) for _ in range(2))
    x = torch.randn(2, 3, 7)
    compiled = metadef.compile(model, (x,))
    torch.testing.assert_close(compiled(x), twin(x))
    torch.testing.assert_close(model.running_mean, twin.running_mean)
    torch.testing.assert_close(model.running_var, twin.running_var)


def test_native_batch_norm_writes_its_statistics() -> None:
    def model(x: torch.Tensor, mean: torch.Tensor, var: torch.Tensor) -> torch.Tensor:
        return torch.native_batch_norm(x, None, None, mean, var, True, 0.5, 1e-5)[0]

    args = torch.randn(4, 3, 5), torch.zeros(3), torch.ones(3)
    compiled = metadef.compile(model, args)
    ours, theirs = [t.clone() for t in args], [t.clone() for t in args]
    torch.testing.assert_close(compiled(*ours), model(*theirs))
    torch.testing.assert_close(ours, theirs)


def test_a_fresh_result_shares_no_memory() -> None:
    compiled = metadef.compile(lambda x: (x.clone(), x.reshape(4)), (torch.ones(2, 2),))
    x = torch.ones(2, 2)
    copy, _ = compiled(x)
    copy.add_(1)
    assert x.tolist() == [[1, 1], [1, 1]]


def test_results_outlive_later_calls() -> None:
    compiled = metadef.compile(lambda x: x + 1, (torch.ones(4),))
    first = compiled(torch.zeros(4))
    compiled(torch.full((4,), 9.0))
    assert first.tolist() == [1, 1, 1, 1]


class _Packs(nn.Module):
    """Packs `weight`, reads `bias` as it is, returns `kept`, and writes to `count`."""

    def __init__(self, between: Any = torch.relu) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.randn(64, 64)), nn.Parameter(torch.randn(64))
        self.kept = nn.Parameter(torch.randn(64))
        self.register_buffer("count", torch.zeros(1))
        self.between = between

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.count.add_(1)
        x = self.between(nn.functional.linear(x, self.weight, self.bias))
        return nn.functional.linear(x, self.weight), self.kept


@pytest.mark.parametrize("between", [torch.relu, torch.linalg.inv])
@pytest.mark.filterwarnings("ignore:torch runs")
def test_weights_that_were_packed_are_not_kept_beside_their_panels(between: Any) -> None:
    model = _Packs(between)
    x = torch.randn(64, 64)
    expected = [t.detach() for t in model(x)]
    compiled = metadef.compile(model, (x,))
    packed = StorageWeakRef(model.weight.untyped_storage())
    kept, count = model.kept.detach(), model.count
    before = count.item()
    del model
    gc.collect()
    assert packed.expired()
    got = compiled(x)
    torch.testing.assert_close(list(got), expected, rtol=1e-3, atol=1e-3)
    assert got[1].data_ptr() == kept.data_ptr() and count.item() == before + 1
    assert "linear" in compiled.mlir() and compiled.report().parts


def test_workers_make_room_for_large_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("METADEF_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(compiler, "_LARGE_WEIGHTS", 0)
    ended: list[bool] = []
    monkeypatch.setattr(compiler.WORKERS, "end", lambda: ended.append(True))
    model, x = nn.Linear(11, 13).eval(), torch.randn(7, 11)
    with torch.no_grad():
        assert metadef.compile(model, (x,))(x).shape == (7, 13)
    assert ended


def test_symbols_take_each_call_s_sizes() -> None:
    batch = Dim("batch", max=16)
    model = nn.Sequential(nn.Linear(4, 4), nn.Softmax(-1))
    compiled = metadef.compile(model, (torch.ones(3, 4),), dynamic_shapes=({0: batch},))
    for rows in (2, 7, 16):
        x = torch.randn(rows, 4)
        torch.testing.assert_close(compiled(x), model(x).detach())
    with pytest.raises(InputError, match="batch at least .* at most 16, got 17"):
        compiled(torch.ones(17, 4))


def test_transformers_outputs_keep_their_class() -> None:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        vocab_size=9,
    )
    model = transformers.BertModel(config).eval()
    ids = torch.randint(0, 9, (2, 5))
    compiled = metadef.compile(model, (ids,))
    got, expected = compiled(ids), model(ids)
    assert type(got) is type(expected)
    torch.testing.assert_close(
        got.last_hidden_state, expected.last_hidden_state, rtol=1e-4, atol=1e-5
    )


def test_report_mlir_and_plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("METADEF_CACHE_DIR", str(tmp_path))
    told: list[tuple[str, int, int]] = []
    compiled = metadef.compile(
        nn.Linear(4, 4), (torch.ones(2, 4),), progress=lambda *step: told.append(step)
    )
    report = compiled.report()
    assert report.parts == 1 and report.kernels >= 1 and not report.fallbacks
    assert {"export", "import", "kernels", "program"} <= {s.name for s in report.stages}
    assert {"export", "kernels"} <= {stage for stage, _, _ in told}
    assert "torch.aten.linear" in compiled.mlir("import")
    assert "metadef.contraction" in compiled.mlir("convert-torch-to-metadef")
    (part,) = compiled.plan["parts"]
    assert set(part["dispatches"]) <= set(part["kernels"])
    with pytest.raises(MetadefError, match="no stage 'infer-shape'; did you mean 'infer-shapes'"):
        compiled.mlir("infer-shape")


@pytest.mark.parametrize(
    "model",
    [
        lambda x: x.kthvalue(1),
        lambda x: x.kthvalue(1, keepdim=True),
        torch.count_nonzero,
        lambda x: torch.count_nonzero(x, 0),
        lambda x: torch.count_nonzero(x, (-1,)),
    ],
    ids=["kthvalue", "keepdim", "count", "count-dim", "count-dims"],
)
def test_every_stage_of_ops_whose_dim_is_one_that_a_number_lacks(model: Any) -> None:
    """torch-mlir's verifier refuses them: their text could not be parsed again."""
    for x in (torch.tensor(3.0), torch.tensor([0.0, 2.0])):
        compiled = metadef.compile(model, (x,), fallback="error")
        torch.testing.assert_close(compiled(x), model(x))
        assert "define void @" in compiled.mlir("llvm-ir")


def test_imported_ir_that_does_not_verify_is_an_error_of_ours() -> None:
    broken = "func.func @main(%x: f32) -> i32 {\n  return %x : f32\n}"
    with pytest.raises(MetadefError, match="stage 'infer-shapes': what was imported does not ver"):
        stage_text("main", broken, "infer-shapes", probe())


def test_models_that_compute_nothing() -> None:
    rows = Dim("rows", max=9)
    same = metadef.compile(
        lambda x: (x, x.shape[0] * 2), (torch.ones(3),), dynamic_shapes=({0: rows},)
    )
    x = torch.ones(5)
    got = same(x)
    assert got[0] is x and got[1] == 10
    with pytest.raises(InputError, match="rows"):
        same(torch.ones(10))


def test_an_exported_program_is_left_as_it_was() -> None:
    x = torch.randn(2, 3)
    program = torch.export.export(nn.Linear(3, 3), (x,))
    before = str(program.graph)
    for _ in range(2):
        torch.testing.assert_close(metadef.compile(program)(x), program.module()(x).detach())
    assert str(program.graph) == before


@pytest.mark.parametrize(
    "model",
    [
        lambda x: x * x.sum().item(),
        lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)),
        lambda x: x[x > 0].exp().sum(),
        lambda x: torch.fft.rfft(x).abs() + 1,
    ],
    ids=["item", "cond", "mask", "complex"],
)
@pytest.mark.filterwarnings("ignore::metadef.frontend.partition.MetadefWarning")
def test_what_depends_on_data_runs_too(model: Any) -> None:
    compiled = metadef.compile(model, (torch.ones(4),))
    for x in (torch.tensor([1.0, 2.0, -1.0, 3.0]), -torch.ones(4)):
        torch.testing.assert_close(compiled(x), model(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads: expected at least 1, got 0"),
        ({"threads": "2"}, "threads: expected an int, got str"),
        ({"fallback": "never"}, "fallback: expected 'eager' or 'error', got 'never'"),
    ],
)
def test_bad_options_are_refused(options: Any, message: str) -> None:
    with pytest.raises(MetadefError, match=message):
        metadef.compile(nn.ReLU(), (torch.ones(1),), **options)


def test_the_ir_after_each_pass_goes_to_a_folder(tmp_path: Any) -> None:
    metadef.compile(nn.ReLU(), (torch.ones(2),), print_ir_after_all=True, ir_dir=tmp_path)
    assert any("convert-torch-to-metadef" in file.name for file in tmp_path.iterdir())


def test_nothing_is_warned_of_a_native_model() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        metadef.compile(nn.LSTM(4, 4), (torch.ones(3, 1, 4),))


def test_attention_over_no_keys_is_zero() -> None:
    q, k = torch.randn(1, 2, 3, 8), torch.randn(1, 2, 0, 8)
    compiled = metadef.compile(torch.nn.functional.scaled_dot_product_attention, (q, k, k))
    assert torch.equal(compiled(q, k, k), torch.zeros(1, 2, 3, 8))


@pytest.mark.parametrize("width", [64, 88])
def test_attention_of_one_row_over_a_cache(width: int) -> None:
    q = torch.randn(1, 3, 1, width)
    k, v = torch.randn(1, 3, 37, width), torch.randn(1, 3, 37, width)
    attend = nn.functional.scaled_dot_product_attention
    compiled = metadef.compile(attend, (q, k, v), threads=2)
    expected = attend(q.double(), k.double(), v.double())
    torch.testing.assert_close(compiled(q, k, v).double(), expected, rtol=1e-5, atol=1e-6)
