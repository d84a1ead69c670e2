"""The fixed subset that every change has to pass: a case of each family of ops, one sample each."""

from __future__ import annotations

from .cases import Case

QUICK_SAMPLES = 1

_FLOAT32 = """
    addmm amax argsort as_strided atan2 bernoulli bucketize cat cdist clamp constant_pad_nd cumprod
    diagonal_scatter digamma einsum erfinv fft.rfft flip gather gradient hypot index_put index_select
    kthvalue linalg.cholesky linalg.vector_norm log_softmax logcumsumexp lu_solve masked_scatter
    max_pool2d_with_indices_backward median mode nanmean native_layer_norm nn.functional.conv2d
    nn.functional.conv_transpose1d nn.functional.cross_entropy nn.functional.embedding_bag
    nn.functional.grid_sample nn.functional.group_norm nn.functional.max_pool1d nn.functional.pdist
    nn.functional.pixel_shuffle nn.functional.scaled_dot_product_attention nonzero nn.functional.unfold
    pow remainder repeat_interleave roll scatter_add searchsorted sort split std_mean tensordot topk
    trapezoid tril unfold unique where
"""
_INT64 = """
    __getitem__ add argmax bincount bitwise_left_shift bmm cumsum div floor_divide gcd index_add isin
    max min prod scatter sum take_along_dim true_divide triu_indices
"""
_VARIANTS = {"div": "floor_rounding", "nn.functional.unfold": "", "max": "reduction_with_dim"}


def quick_cases() -> list[Case]:
    """Return the cases of the quick subset."""
    floats = [Case(op, "", "float32") for op in _FLOAT32.split()]
    return floats
