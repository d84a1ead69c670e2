"""`convert-torch-to-metadef`: what it builds means what eager computes.

The converted function is run by the dialect's reference semantics, in double precision, and
compared with eager: floats within 1e-5 of the largest value (bf16: 1e-2), the rest exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch.utils import _pytree as pytree

from metadef import ir
from metadef.dialects.metadef.interpret import interpret
from metadef.frontend.export import export
from metadef.frontend.importer import import_graph
from metadef.passes.convert_torch_to_metadef import ConvertTorchToMetadef, is_modelled
from metadef.pipeline import run_passes


class _Function(torch.nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def _array(tensor: torch.Tensor) -> np.ndarray[Any, Any]:
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def _converted(
    model: torch.nn.Module, args: Sequence[Any], dynamic_shapes: Any = None
) -> tuple[ir.Module, Any]:
    graph = export(model, tuple(args), None, dynamic_shapes).graph
    module = import_graph(graph.module, graph.source_of, graph.symbols)
    run_passes(module, [ConvertTorchToMetadef()])
    return module, graph


def _opaque_ops(module: ir.Module) -> list[str]:
    return [str(op) for op in ir.operations(module) if op.operation.name == "metadef.opaque"]


def _check(
    model: Any, args: Sequence[Any], run: Sequence[Any] | None = None, dynamic_shapes: Any = None
) -> None:
    """Convert with `args`, run with `run` (or `args`), and compare with eager."""
    if not isinstance(model, torch.nn.Module):
        model = _Function(model)
    module, graph = _converted(model.eval(), args, dynamic_shapes)
    assert not _opaque_ops(module)
    run = args if run is None else run
    leaves = pytree.tree_leaves(tuple(run))
    weights = {name: _array(graph.weights[name]) for name in graph.weights}
    inputs = [_array(leaves[s.index]) for _, s in graph.bindings() if s.kind == "argument"]
    with module.context, ir.Location.unknown():
        results = interpret(module.body.operations[0], inputs, weights)
    with torch.no_grad():
        expected = pytree.tree_leaves(model(*run))
    for output, want in zip(graph.outputs, expected, strict=True):
        if output.kind == "value":
            _assert_close(results[output.index], want)


def _assert_close(got: np.ndarray[Any, Any], want: torch.Tensor) -> None:
    array = _array(want)
    assert got.shape == array.shape
    assert got.dtype == array.dtype
    if array.dtype.kind != "f":
        np.testing.assert_array_equal(got, array)
        return
    finite = array[np.isfinite(array)]
    largest = float(np.abs(finite).max()) if finite.size else 1.0
    tolerance = 1e-2 if want.dtype in (torch.bfloat16, torch.float16) else 1e-5
    np.testing.assert_allclose(got, array, rtol=0, atol=tolerance * max(largest, 1e-6))


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def _x(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(shape).to(dtype) if dtype.is_floating_point else _ints(*shape).to(dtype)


def _ints(*shape: int) -> torch.Tensor:
    return torch.randint(-9, 10, shape)


#: one case an idea: (name, function, arguments)
_CASES: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("int_plus_float_scalar", lambda x: x + 0.5, (_ints(4),)),
    ("int_div_is_true_division", lambda x, y: x / (y * y + 1), (_ints(9), _ints(9))),
    ("floor_division", lambda x: (x // 4, x.div(4, rounding_mode="trunc"), x % 4), (_ints(20),)),
    ("fmod_keeps_sign", lambda x: (torch.fmod(x, 4), torch.fmod(x.float(), 2.5)), (_ints(20),)),
    (
        "uint8_add_then_widen",
        lambda x, y: (x + y).to(torch.int32),
        (torch.full((3,), 200, dtype=torch.uint8), torch.full((3,), 100, dtype=torch.uint8)),
    ),
    (
        "uint8_and_int8_give_int16",
        lambda x, y: x + y,
        (_ints(4).abs().to(torch.uint8), _ints(4).to(torch.int8)),
    ),
    (
        "rank_0_tensor_does_not_widen",
        lambda x, y: x + y,
        (_x(4), torch.tensor(2.0, dtype=torch.float64)),
    ),
    (
        "diff_of_order_0_is_of_x_alone",
        lambda x, y: (torch.diff(x, n=0, prepend=y), torch.diff(x, n=2, prepend=y, append=y)),
        (_x(3, 4), _x(3, 1)),
    ),
    ("rank_0_float_lifts_int", lambda x, y: x * y, (_ints(4), torch.tensor(1.5))),
    (
        "bool_arithmetic",
        lambda x, y: (x + y, x * y, x.sum(), x ^ y, ~x),
        (_ints(9) > 0, _ints(9) > 2),
    ),
    ("negative_float_to_uint8", lambda x: x.to(torch.uint8), (torch.tensor([-2.18, 3.9, 300.7]),)),
    ("float_to_bool", lambda x: x.to(torch.bool), (torch.tensor([0.0, -0.0, 0.3, float("nan")]),)),
    (
        "nan_through_clamp_and_max",
        lambda x: (x.clamp(-1, 1), x.max(), torch.relu(x), x.argmax()),
        (torch.tensor([0.0, 7.0, float("nan"), -3.0]),),
    ),
    (
        "min_of_int8_and_uint8",
        lambda x: (x.min(), x.argmin(), x.to(torch.uint8).min(), x.to(torch.uint8).argmin()),
        (torch.randint(-128, 128, (18,)).to(torch.int8),),
    ),
    (
        "minimum_of_triu_int8",
        lambda x: torch.min(torch.triu(x), torch.tensor(0, dtype=torch.int8)),
        (torch.randint(-128, 128, (57, 22)).to(torch.int8),),
    ),
    (
        "triu_tril_of_product",
        lambda x, y: (torch.triu(x @ y, 1), torch.tril(x @ y, -1)),
        (_x(5, 4), _x(4, 6)),
    ),
    (
        "cumsum_of_flipped_masked",
        lambda x: (x.flip(1).masked_fill(x > 0, 0).cumsum(1), x.cumprod(0)),
        (_x(4, 5),),
    ),
    ("cummax_takes_last_of_equals", lambda x: torch.cummax(x, 0), (_ints(30),)),
    (
        "var_and_std",
        lambda x: (x.var(), x.std(1, correction=0), torch.var_mean(x, (0, 2))),
        (_x(3, 4, 5) + 100,),
    ),
    (
        "logsumexp_of_sigmoid",
        lambda x, w: torch.logsumexp(torch.sigmoid(x @ w), 1),
        (_x(4, 5), _x(5, 6)),
    ),
    (
        "logsumexp_of_infinities",
        lambda x: torch.logsumexp(x, 1),
        (torch.tensor([[-torch.inf, -torch.inf], [torch.inf, 1.0]]),),
    ),
    (
        "norms",
        lambda x: (x.norm(), x.norm(1, 0), x.norm(torch.inf, 1), F.normalize(x, p=3.0)),
        (_x(4, 5),),
    ),
    ("negative_slices", lambda x: (x[-3:-1], x[:, 1::2], x[..., -1], x[5:2]), (_x(6, 7),)),
    (
        "roll_flip_rot90",
        lambda x: (x.roll((1, -2), (0, 1)), x.flip(0, 1), torch.rot90(x, 3)),
        (_x(3, 5),),
    ),
    ("split_chunk_unbind", lambda x: (*x.split(2), *x.chunk(3, 1), *x.unbind(1)), (_x(5, 4),)),
    (
        "repeat_and_interleave",
        lambda x: (x.repeat(2, 1, 3), x.repeat_interleave(3, 1)),
        (_x(2, 3),),
    ),
    (
        "pads",
        lambda x: (
            F.pad(x, (1, -1, 2, 0), value=3.0),
            F.pad(x, (2, 1), mode="reflect"),
            F.pad(x, (1, 2), mode="replicate"),
            F.pad(x, (1, 2), mode="circular"),
        ),
        (_x(2, 3, 4),),
    ),
    (
        "advanced_index_apart",
        lambda x, i, j: (x[i, :, j], x[:, i, j], x[i]),
        (_x(4, 5, 4), torch.tensor([0, -1, 2]), torch.tensor([[1], [-2]])),
    ),
    (
        "gather_scatter",
        lambda x, i: (x.gather(1, i), x.scatter(1, i, 2.0), x.scatter_add(1, i, x)),
        (_x(3, 4), torch.tensor([[3, 2, 1, 0]] * 3)),
    ),
    (
        "index_put_4d",
        lambda x, i, v: x.index_put((i, i), v, accumulate=True),
        (_x(3, 3, 2, 2), torch.tensor([0, 2, 0]), _x(3, 2, 2)),
    ),
    (
        "masked_index_put",
        lambda x: torch.ops.aten.index_put(x, [x > 0], torch.tensor(9.0)),
        (_x(4, 4),),
    ),
    (
        "where_masked_fill",
        lambda x: (torch.where(x > 0, x, 1), x.masked_fill(x < 0, -torch.inf)),
        (_x(4, 4),),
    ),
    (
        "topk_sort",
        lambda x: (*x.topk(3, 1), *x.sort(0, descending=True), x.argsort(1)),
        (_x(4, 6),),
    ),
    (
        "median_of_nan",
        lambda x: (*x.median(1), *x.nanmedian(1)),
        (torch.tensor([[1.0, float("nan"), 2.0, 0.0], [4.0, 3.0, 2.0, 1.0]]),),
    ),
    (
        "einsums",
        lambda x, y: (
            torch.einsum("bij,bkj->bik", x, y),
            torch.einsum("bij,bij->b", x, y),
            torch.einsum("...ij->...ji", x),
            torch.einsum("bij,ckj->bcik", x, y),
            torch.einsum("bii->bi", x[:, :, :3]),
            torch.einsum("iji->j", x[:, :, :2]),
        ),
        (_x(2, 3, 4), _x(2, 3, 4)),
    ),
    (
        "matmuls",
        lambda x, y, v: (x @ y, x @ v, v @ y[0], v @ v, torch.addmm(x[0], x[0], y[0], alpha=2)),
        (_x(2, 4, 4), _x(2, 4, 4), _x(4)),
    ),
    (
        "addmm_beta_0_ignores_nan",
        lambda x, a: torch.addmm(x, a, a, beta=0.0),
        (torch.full((3, 3), torch.nan), _x(3, 3)),
    ),
    (
        "arange_kinds",
        lambda x: (x + torch.arange(4), torch.arange(1, 2, 0.3), torch.arange(9, 1, -3)),
        (_x(4),),
    ),
    (
        "linspace_eye_full",
        lambda x: (torch.linspace(0, 1, 7), torch.eye(3, 4), torch.full((2,), 7), x),
        (_x(1),),
    ),
    (
        "activations",
        lambda x: (
            F.gelu(x),
            F.gelu(x, approximate="tanh"),
            F.silu(x),
            F.elu(x, 0.5),
            F.selu(x),
            F.mish(x),
            F.hardswish(x),
            F.softplus(x, 2.0, 1.0),
            F.leaky_relu(x, 0.1),
            F.hardtanh(x, -0.5, 0.5),
            F.glu(x, 1),
        ),
        (_x(4, 6) * 3,),
    ),
    (
        "losses",
        lambda x, y: (
            F.mse_loss(x, y),
            F.smooth_l1_loss(x, y),
            F.huber_loss(x, y),
            F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"),
            F.hinge_embedding_loss(x, torch.sign(y)),
            F.triplet_margin_loss(x, y, x + y),
        ),
        (_x(4, 6), _x(4, 6)),
    ),
    (
        "cross_entropies",
        lambda x, t: (
            F.cross_entropy(x, t),
            F.cross_entropy(x, t, label_smoothing=0.1),
            F.binary_cross_entropy_with_logits(x, (x > 0).float()),
        ),
        (_x(4, 6), torch.tensor([0, 5, -100, 2])),
    ),
    (
        "attention_causal",
        lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True),
        (_x(2, 3, 5, 4),),
    ),
    (
        "attention_masked",
        lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m, scale=0.3),
        (_x(2, 3, 5, 4), torch.rand(5, 5) > 0.3),
    ),
    (
        "attention_grouped",
        lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
        (_x(2, 4, 5, 4), _x(2, 2, 6, 4)),
    ),
    (
        "convolutions",
        lambda x, w, d: (
            F.conv2d(x, w, stride=2, padding=1),
            F.conv2d(x, w, padding="same"),
            F.conv2d(x, d, groups=4, dilation=2),
            F.conv2d(x[0], w),
        ),
        (_x(2, 4, 9, 8), _x(6, 4, 3, 3), _x(8, 1, 3, 3)),
    ),
    (
        "transposed_convolution",
        lambda x, w: F.conv_transpose2d(x, w, stride=2, padding=1, output_padding=1, groups=2),
        (_x(2, 4, 5, 5), _x(4, 3, 3, 3)),
    ),
    (
        "pools",
        lambda x: (
            F.max_pool2d(x, 3, 2, 1, ceil_mode=True),
            F.avg_pool2d(x, 3, 2, 1, ceil_mode=True),
            F.avg_pool2d(x, 3, 2, 1, count_include_pad=False),
            F.adaptive_avg_pool2d(x, 3),
            F.adaptive_max_pool2d(x, (3, 2), return_indices=True),
            F.max_pool2d(x, 2, return_indices=True),
        ),
        (_x(2, 3, 8, 7),),
    ),
    (
        "resampling",
        lambda x: (
            F.interpolate(x, scale_factor=2.0),
            F.interpolate(x, (7, 5), mode="bilinear"),
            F.interpolate(x, (7, 9), mode="bicubic", align_corners=True),
        ),
        (_x(2, 3, 4, 4),),
    ),
    (
        "pow_small_exponents",
        lambda x: (x**2, x**3, x**0.5, x**-1, x**0, 2**x, x**1.7),
        (_x(9).abs() + 0.1,),
    ),
    ("bitwise_and_shifts", lambda x, y: (x & y, x | 5, ~x, x << 2, x >> 1), (_ints(9), _ints(9))),
    (
        "isnan_and_friends",
        lambda x: (x.isnan(), x.isinf(), x.isfinite(), x.nan_to_num(), x.signbit()),
        (torch.tensor([0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1.0]),),
    ),
    ("empty_tensor", lambda x: (x + 1, x.sum(), x.prod(), torch.cat([x, x], 1)), (_x(2, 0),)),
    ("unchanged_and_none", lambda x: (x + 1, None), (_x(3),)),
]


@pytest.mark.parametrize(("function", "args"), [c[1:] for c in _CASES], ids=[c[0] for c in _CASES])
def test_matches_eager(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    _check(function, args)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_matches_eager_in_other_floats(dtype: torch.dtype) -> None:
    def function(x: torch.Tensor, y: torch.Tensor) -> Any:
        return x * 0.1 + y, x.softmax(1), F.layer_norm(x, (6,)), x.var(1), F.gelu(x) @ y.T, x**3

    _check(function, (_x(4, 6, dtype=dtype), _x(4, 6, dtype=dtype)))


def test_normalises_like_eager() -> None:
    class Norms(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.batch = torch.nn.BatchNorm2d(4)
            self.group = torch.nn.GroupNorm(2, 4)
            self.instance = torch.nn.InstanceNorm2d(4, affine=True)
            self.layer = torch.nn.LayerNorm((8, 8), bias=False)
            self.rms = torch.nn.RMSNorm(8)

        def forward(self, x: torch.Tensor) -> Any:
            parts = self.batch(x), self.group(x), self.instance(x), self.layer(x), self.rms(x)
            training = F.batch_norm(x, None, None, self.batch.weight, training=True)
            return *parts, training

    norms = Norms()
    with torch.no_grad():
        norms.batch.running_mean.normal_()
        norms.batch.weight.normal_()
    _check(norms, (_x(2, 4, 8, 8),))


def test_recurrent_layers_match_eager() -> None:
    class Recurrent(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = torch.nn.LSTM(5, 4, 2, bidirectional=True, batch_first=True)
            self.gru = torch.nn.GRU(8, 3)

        def forward(self, x: torch.Tensor) -> Any:
            y, state = self.lstm(x)
            return y, state, self.gru(y)

    _check(Recurrent(), (_x(2, 3, 5),))


def _dynamic(**names: tuple[int, int]) -> dict[str, Any]:
    return {n: torch.export.Dim(n, min=low, max=high) for n, (low, high) in names.items()}


def test_attention_with_dynamic_batch_and_sequence() -> None:
    dims = _dynamic(B=(2, 8), S=(2, 16))
    layer = torch.nn.MultiheadAttention(8, 2, batch_first=True).eval()

    def function(x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = layer(x, x, x, need_weights=False)[0]
        return result

    class Wrapped(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = layer

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return function(x)

    _check(Wrapped(), (_x(3, 5, 8),), (_x(4, 7, 8),), ({0: dims["B"], 1: dims["S"]},))


def test_view_merges_dynamic_dims() -> None:
    dims = _dynamic(B=(2, 8), S=(2, 16))
    _check(
        lambda x: x.view(-1, 64) * x.shape[0],
        (_x(3, 5, 8, 8),),
        (_x(4, 2, 8, 8),),
        (({0: dims["B"], 1: dims["S"]},),),
    )


def test_sizes_as_data_and_slices_by_symbols() -> None:
    dims = _dynamic(S=(4, 8))

    def function(x: torch.Tensor) -> Any:
        size = x.shape[0]
        position = torch.arange(size, device=x.device)
        half = x[: size // 2], x[-2:], x[1:-1], x[2:]
        triangle = torch.tril(torch.ones(size, size))
        return *half, x + position, x / size, x.new_zeros(size, 2), triangle

    _check(function, (_x(6),), (_x(7),), (({0: dims["S"]},),))


def test_lowers_gradients_of_convolution_and_pooling() -> None:
    class Gradients(torch.nn.Module):
        def forward(self, x: torch.Tensor, w: torch.Tensor, g: torch.Tensor) -> Any:
            backward = torch.ops.aten.convolution_backward
            args = ([6], [2, 2], [1, 1], [1, 1], False, [0, 0], 2, [True, True, True])
            value, at = torch.ops.aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])
            pooled = torch.ops.aten.max_pool2d_with_indices_backward(
                value, x, [3, 3], [2, 2], [1, 1], [1, 1], False, at
            )
            mean = torch.ops.aten.avg_pool2d_backward(
                value, x, [3, 3], [2, 2], [1, 1], False, True, None
            )
            return *backward(g, x, w, *args), pooled, mean

    _check(Gradients(), (_x(2, 4, 7, 6), _x(6, 2, 3, 3), _x(2, 6, 4, 3)))


def test_gradient_of_attention() -> None:
    q = _x(2, 3, 5, 4)
    forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward

    def function(q: torch.Tensor, k: torch.Tensor, g: torch.Tensor) -> Any:
        out, sums = forward(q, k, k, 0.0, True)
        return out, sums, *backward(g, q, k, k, out, sums, 0.0, True)

    _check(function, (q, _x(2, 3, 5, 4), _x(2, 3, 5, 4)))


def test_names_what_it_models() -> None:
    assert is_modelled("torch.aten.softmax.int")
    assert not is_modelled("torch.aten.linalg_svd")


def test_wraps_what_it_does_not_model() -> None:
    module, _ = _converted(_Function(lambda x: torch.special.airy_ai(x) + 1), (_x(3),))
    (opaque,) = _opaque_ops(module)
    assert "aten.special_airy_ai" in opaque


def test_keeps_source_lines() -> None:
    module, _ = _converted(_Function(lambda x: x.tanh()), (_x(3),))
    (op,) = [o for o in ir.operations(module) if o.operation.name == "metadef.pointwise"]
    assert __file__ in str(op.location)
