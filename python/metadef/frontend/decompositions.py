"""Which aten ops the graph keeps whole: what the metadef dialect models; the rest is decomposed."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import fx
from torch._decomp import get_decompositions, global_decomposition_table

from metadef.passes.torch_ops.registry import conversions, is_modelled

from .composite_ops import COMPOSITE_OPS
from .node_names import torch_op_name
from .special_functions import SPECIAL_FUNCTIONS

aten = torch.ops.aten

conversions()  # their modules load with the compiler, not in its first compilation

#: decompositions that torch has but leaves out of its core table; without them torch runs the ops
_EXTRA = (
    aten._adaptive_avg_pool2d,
    aten._addmm_activation,
    aten._native_batch_norm_legit,
    aten._native_batch_norm_legit_functional,
    aten._to_copy,
    aten.adaptive_max_pool2d,
    aten.adaptive_max_pool3d,
    aten.addmv,
    aten.as_strided_copy,
    aten.diag,
    aten.dist,
    aten.elu,
    aten.grid_sampler_2d,
    aten.hardtanh,
    aten.index_select,
    aten.ldexp,
    aten.leaky_relu,
    aten.native_batch_norm,
    aten.slice_scatter,
    aten.squeeze.dims,
    aten.tril_indices,
    aten.triu_indices,
    aten.unfold,
    aten.var,
    aten.var_mean,
)

#: kept whole whether a pass models them or not: the decompositions end in ops that nobody can
#: lower; that of attention picks a kernel whose strides break views that the model has already made
_KEPT = (
    "aten.scaled_dot_product_attention",
    "aten.fft_",
    "aten.stft",
    "aten.istft",
    "aten.linalg_",
)


#: no, these are not: they end in ops that we lower, or, det and slogdet, in ones that only torch
#: does right, while torch-mlir eliminates without pivoting
_NOT_KEPT = (
    "aten.linalg_det",
    "aten.linalg_matrix_norm",
    "aten.linalg_norm",
    "aten.linalg_slogdet",
    "aten.linalg_vander",
)

#: modelled ops that are taken apart in some cases: in others the rule gives NotImplemented
_SOMETIMES = (
    aten.instance_norm.default,
    aten.kthvalue.default,
    aten.count_nonzero.default,
    aten.count_nonzero.dim_IntList,
)


@functools.cache
def decomposition_table() -> dict[Any, Callable[..., Any]]:
    """Return torch's core decompositions and a few more, minus the ops that we model whole."""

    table: dict[Any, Callable[..., Any]] = dict(torch.export.default_decompositions())
    table.update(get_decompositions(_EXTRA))
    table.update(SPECIAL_FUNCTIONS)
    table.update(COMPOSITE_OPS)
    table[aten.instance_norm.default] = _instance_norm(table[aten.instance_norm.default])
    return {
        op: rule
        for op, rule in table.items()
        if op in _SOMETIMES
        or (not _is_kept(str(op)) and (_may_alias(op) or not is_modelled(torch_op_name(op))))
    }


def _instance_norm(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Take it apart where it writes its running statistics, which its schema does not tell."""

    def decomposition(*args: Any, **kwargs: Any) -> Any:
        writes = args[3] is not None and args[5]
        return rule(*args, **kwargs) if writes else NotImplemented

    return decomposition


def _is_kept(name: str) -> bool:
    return name.startswith(_KEPT) and not name.startswith(_NOT_KEPT)


def _may_alias(op: Any) -> bool:
    """Say whether a composite op may return its operand: that depends on strides."""
    return op._can_decompose() and any(r.alias_info is not None for r in op._schema.returns)


def is_settled(graph: fx.Graph) -> bool:
    """Say whether decomposing would change nothing that matters: it costs as much as exporting.

    True for a graph without effects whose ops are modelled, or are not in the table anyway.
    """

    for node in graph.nodes:
        op = node.target
        if node.op != "call_function" or node.target is operator.getitem:
            if node.op == "get_attr":
                return False
            continue
        if not isinstance(op, torch._ops.OpOverload):
            if isinstance(node.meta.get("val"), torch.SymInt):
                continue
            return False
        if op._schema.is_mutable or _is_stateful(node):
            return False
        if op in _SOMETIMES and node.args[0].meta["val"].ndim == 0:
            return False
        if not is_modelled(torch_op_name(op)) and op in decomposition_table():
            return False
    return True


def _is_stateful(node: fx.Node) -> bool:
    """Say whether an op whose schema does not tell so may draw random numbers or change buffers."""
    op: Any = node.target
    if op is aten.dropout.default:
        return node.args[2] is not False
    if op in (aten.batch_norm.default, aten.native_batch_norm.default):
        return node.args[5] is not False
    if op is aten.instance_norm.default:
        return node.args[3] is not None and node.args[5] is not False
    if op is aten.scaled_dot_product_attention.default:
        return False
    return torch.Tag.nondeterministic_seeded in op.tags


@functools.cache
def training_decompositions() -> dict[Any, Callable[..., Any]]:
    """Return the table for aot_autograd, which has taken composite ops apart already.

    Its graphs also have backward ops: what torch can decompose of them, is decomposed.
    """

    backward = {
        op: rule
        for op, rule in global_decomposition_table["post_autograd"].items()
        if isinstance(op, torch._ops.OpOverload)
        and "backward" in op._schema.name
        and not is_modelled(torch_op_name(op))
    }
    return {**backward, **decomposition_table()}
