"""The fixed subset that a change has to pass: one case or two of each family of ops."""

from __future__ import annotations

from .cases import Case

QUICK_SAMPLES = 1

_FLOAT32 = """
    add addmm
"""


def quick_cases() -> list[Case]:
    """Return the cases of the quick subset."""
    return [Case(op, "", "float32") for op in _FLOAT32.split()]
