"""Arithmetic of the pointwise functions: operations for one element.

An elementary function counts as the arithmetic of the polynomial that `expand-math` makes of it
(additions, multiplications, divisions, comparisons, minima; a fused multiply-add is two), so that a
rate in flop/s means the same for exp as for a product. A test compares the table with the passes.
"""

from __future__ import annotations

#: what is not named here is one operation
_F32 = {
    "identity": 0, "cast": 0, "truncdiv": 2, "fma": 2, "clamp": 2, "isinf": 2, "isfinite": 2,
    "copysign": 2, "sign": 4, "remainder": 5, "nextafter": 9, "hypot": 14, "floordiv": 17,
    "rsqrt": 2, "exp": 24, "exp2": 23, "expm1": 24, "log": 33, "log2": 31, "log10": 32,
    "log1p": 34, "pow": 83, "sin": 26, "cos": 27, "tan": 54, "asin": 20, "acos": 23, "atan": 25,
    "atan2": 32, "sinh": 59, "cosh": 42, "tanh": 26, "asinh": 82, "acosh": 82, "atanh": 42,
    "erf": 39, "erfc": 131, "erfinv": 440, "lgamma": 210, "digamma": 186, "sigmoid": 27,
    "silu": 27, "gelu": 43, "gelu_tanh": 34, "hardswish": 5, "hardsigmoid": 4, "mish": 31,
    "softplus": 59,
}  # fmt: skip
_F64 = _F32 | {
    "exp": 35, "exp2": 33, "expm1": 36, "log": 36, "log2": 34, "log10": 35, "log1p": 37,
    "pow": 137, "sin": 38, "cos": 39, "tan": 78, "asin": 36, "acos": 39, "atan": 47, "atan2": 54,
    "tanh": 38, "erf": 129, "sigmoid": 38, "silu": 38, "gelu": 133, "gelu_tanh": 46, "mish": 42,
    "softplus": 73,
}  # fmt: skip


def pointwise_flops(fn: str, element: str) -> int:
    """Return the operations of `fn` for one element of type `element`, as `f32`; halves as f32."""
    return (_F64 if element == "f64" else _F32).get(fn, 1)
