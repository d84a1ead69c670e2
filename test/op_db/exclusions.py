"""Ops whose results are not compared with eager's as the others' are, each with its reason."""

from __future__ import annotations

_RANDOM = "draws random numbers"
_UNINITIALISED = "its result is memory as it was found"

#: ops that give values and their places: where elements are equal, torch picks one as it likes
PLACES = frozenset({"kthvalue", "median", "mode", "nanmedian", "topk"})

#: op of the database (every variant) -> why its values are not compared; dtype and shape are
NOT_COMPARED = {
    "bernoulli": _RANDOM,
    "cauchy": _RANDOM,
    "empty": _UNINITIALISED,
    "empty_like": _UNINITIALISED,
    "empty_permuted": _UNINITIALISED,
    "empty_strided": _UNINITIALISED,
    "exponential": _RANDOM,
    "geometric": _RANDOM,
    "log_normal": _RANDOM,
    "multinomial": _RANDOM,
    "new_empty": _UNINITIALISED,
    "new_empty_strided": _UNINITIALISED,
    "nn.functional.alpha_dropout": _RANDOM,
    "nn.functional.dropout": _RANDOM,
    "nn.functional.dropout2d": _RANDOM,
    "nn.functional.dropout3d": _RANDOM,
    "nn.functional.feature_alpha_dropout": _RANDOM,
    "nn.functional.fractional_max_pool2d": _RANDOM,
    "nn.functional.fractional_max_pool3d": _RANDOM,
    "nn.functional.multi_head_attention_forward": _RANDOM,
    "nn.functional.rrelu": _RANDOM,
    "nn.functional.scaled_dot_product_attention": _RANDOM,
    "normal": _RANDOM,
    "pca_lowrank": _RANDOM,
    "rand_like": _RANDOM,
    "randint": _RANDOM,
    "randint_like": _RANDOM,
    "randn": _RANDOM,
    "randn_like": _RANDOM,
    "svd_lowrank": _RANDOM,
    "torch.ops.aten._flash_attention_forward": _RANDOM,
    "torch.ops.aten._efficient_attention_forward": _RANDOM,
    "uniform": _RANDOM,
}
