"""The fixed subset that every change has to pass: a case or two of each family of ops."""

from __future__ import annotations

from .cases import Case

#: fewer than the table has: a verdict here is as good as there, or better
QUICK_SAMPLES = 1

#: ops, with `/` before the name of a variant
_FLOAT32 = """
    __getitem__ addmm amax argsort as_strided atan2 bernoulli bucketize cat cdist clamp
    constant_pad_nd cumprod diagonal_scatter digamma div/floor_rounding einsum erfinv fft.rfft flip
    frexp gather gradient hypot i0 index_add index_put kthvalue linalg.cholesky linalg.det
    linalg.vector_norm log_softmax logcumsumexp lu_solve masked.softmax masked_scatter
    max/reduction_with_dim median mode nan_to_num nanmean native_batch_norm nonzero
    nn.functional.adaptive_avg_pool2d nn.functional.avg_pool2d nn.functional.conv2d
    nn.functional.conv_transpose1d nn.functional.cosine_similarity nn.functional.cross_entropy
    nn.functional.embedding_bag nn.functional.gelu nn.functional.grid_sample
    nn.functional.group_norm nn.functional.instance_norm nn.functional.interpolate/bilinear
    nn.functional.kl_div nn.functional.layer_norm nn.functional.max_pool1d nn.functional.pad/reflect
    nn.functional.pad/circular nn.functional.pdist nn.functional.pixel_shuffle
    nn.functional.scaled_dot_product_attention nn.functional.unfold normal polygamma/polygamma_n_2
    pow quantile remainder repeat_interleave roll scatter_add scatter_reduce/mean searchsorted sort
    special.bessel_y1 special.ndtri split std_mean/unbiased take_along_dim tensordot topk trapezoid
    tril unique var where
"""
_INT64 = """
    add all argmax bitwise_left_shift bmm cumsum div/trunc_rounding floor_divide gcd isin
    max/binary min/reduction_no_dim pow prod sum scatter_reduce/amin triu_indices true_divide
"""


def quick_cases() -> list[Case]:
    """Return the cases of the quick subset."""
    return [
        Case(op, variant, dtype)
        for dtype, names in (("float32", _FLOAT32), ("int64", _INT64))
        for op, _, variant in (name.partition("/") for name in names.split())
    ]
