"""Who runs an op of a graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

#: host: Python integers, assertions about them, and copies; these are no fallback of anything
Kind = Literal["native", "linalg", "eager", "host"]


@dataclass(frozen=True)
class Verdict:
    """Who runs the op of a node, and why where it is torch."""

    op: str
    kind: Kind
    reason: str = ""
    #: `file:line` of the model's code, or ''
    line: str = ""
