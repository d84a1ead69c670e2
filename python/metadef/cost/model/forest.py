"""Regression trees as arrays: all trees answer for all rows at once, without scikit-learn's loops.

A search asks for one prediction at a time, thousands of times.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Forest:
    """The nodes of all trees one behind the other; a leaf is its own child. `roots` start them."""

    roots: Array
    feature: Array
    threshold: Array
    left: Array
    right: Array
    value: Array
    depth: int

    def predict(self, rows: Array) -> Array:
        """Return what each tree says of each row: [trees, rows]."""
        x = rows.astype(np.float32)  # as the trees were grown
        columns = np.arange(len(x))
        node = np.repeat(self.roots[:, None], len(x), axis=1)
        for _ in range(self.depth):
            below = x[columns, self.feature[node]] <= self.threshold[node]
            node = np.where(below, self.left[node], self.right[node])
        return self.value[node]


def flat(trees: list[Any]) -> Forest:
    """Return scikit-learn's trees (`estimators_`) as arrays."""
    found = [tree.tree_ for tree in trees]
    starts = np.cumsum([0, *(tree.node_count for tree in found)])
    itself = np.arange(starts[-1])

    def joined(name: str) -> Array:
        return np.concatenate([getattr(tree, name) for tree in found])

    leaf = joined("children_left") < 0
    offsets = np.repeat(starts[:-1], np.diff(starts))
    return Forest(
        roots=starts[:-1],
        feature=np.where(leaf, 0, joined("feature")),
        threshold=joined("threshold"),
        left=np.where(leaf, itself, joined("children_left") + offsets),
        right=np.where(leaf, itself, joined("children_right") + offsets),
        value=np.concatenate([tree.value[:, 0, 0] for tree in found]),
        depth=max(tree.max_depth for tree in found),
    )
