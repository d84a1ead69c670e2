"""Level two: a regression of measured / roofline on what a kernel and a choice are in numbers.

Extremely randomised trees (Geurts, Ernst, Wehenkel, 2006), by scikit-learn, on the logarithm of the
ratio: an error of a factor counts the same for all kernels. On the same folds they were as good as
gradient boosting, in a fifth of the time to fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from metadef.cost.table.measurement import Measurement
from metadef.diagnostics import MetadefError

from .forest import Forest, flat

Array = np.ndarray[Any, Any]

#: kernels in each fold are in no other one
FOLDS = 5
#: fewer measurements than this say nothing of other kernels
LEAST = 60
#: flagged measurements say less
_FLAGGED_WEIGHT = 0.5
_TREES = 150
#: part of the errors that is within the spread
_WITHIN = 2 / 3


@dataclass(frozen=True)
class Fit:
    """Trees, and the spread of their errors (log2) on kernels that they were not grown on."""

    forest: Forest
    spread: float

    def predict(self, features: Array) -> tuple[Array, Array]:
        """Return what the trees say of each row, and its spread: that of the trees or that of
        held-out kernels, whichever is more."""
        found = self.forest.predict(features)
        return found.mean(axis=0), np.maximum(found.std(axis=0), self.spread)


@dataclass(frozen=True)
class Regression:
    """`kernels` says log2 of measured / roofline, `choices` log2 of the time under a choice / the
    time by default, which errors of the kernel as such do not disturb: it ranks better. None where
    too few choices were measured."""

    kernels: Fit
    choices: Fit | None

    def predict(self, features: Array, of_default: Array) -> tuple[Array, Array]:
        """Return log2 of measured / roofline for each row, and its spread; `of_default` has the
        features of each kernel by default."""
        found, spread = self.kernels.predict(of_default)
        if self.choices is not None:
            ratio, apart = self.ratio(features, of_default)
            return found + ratio, np.hypot(spread, apart)
        return self.kernels.predict(features)

    def ratio(self, features: Array, of_default: Array) -> tuple[Array, Array]:
        """Return log2 of the time under a choice / by default, and its spread; 0 for the default
        itself."""
        if self.choices is None:
            here, spread = self.kernels.predict(features)
            there, _ = self.kernels.predict(of_default)
            return here - there, spread
        found, spread = self.choices.predict(_beside(features, of_default))
        other = (features != of_default).any(axis=1)
        return np.where(other, found, 0.0), np.where(other, spread, 0.0)


def fit(
    measurements: Sequence[Measurement],
    features: Array,
    targets: Array,
    defaults: Sequence[int | None],
    *,
    spread: bool = True,
) -> Regression:
    """Fit on measurements; `targets` are log2 of measured / roofline, `defaults` say where each
    kernel's default is among them. Without `spread` nobody finds out how far off it is.

    Raises:
        MetadefError: scikit-learn is not installed.
    """
    weights = np.array([_FLAGGED_WEIGHT if m.flagged else 1.0 for m in measurements])
    groups = [m.structure for m in measurements]
    kernels = _fit(groups, features, targets, weights, spread)
    pairs = [(i, d) for i, d in enumerate(defaults) if d is not None and d != i]
    if len(pairs) < LEAST:
        return Regression(kernels, None)
    here, there = (np.array(side) for side in zip(*pairs, strict=True))
    choices = _fit(
        [groups[i] for i in here],
        _beside(features[here], features[there]),
        targets[here] - targets[there],
        weights[here],
        spread,
    )
    return Regression(kernels, choices)


def _beside(features: Array, of_default: Array) -> Array:
    return np.hstack([features - of_default, features])


def _fit(
    groups: Sequence[str], features: Array, targets: Array, weights: Array, spread: bool
) -> Fit:
    errors = []
    for train, test in group_folds(groups, FOLDS) if spread else ():
        forest = _grown(features[train], targets[train], weights[train], _TREES // FOLDS)
        errors.append(np.abs(forest.predict(features[test]).mean(axis=0) - targets[test]))
    off = float(np.quantile(np.concatenate(errors), _WITHIN)) if errors else 0.0
    return Fit(_grown(features, targets, weights, _TREES), off)


def _grown(features: Array, targets: Array, weights: Array, trees: int) -> Forest:
    try:
        from sklearn.ensemble import ExtraTreesRegressor
    except ImportError as error:
        raise MetadefError(
            "the cost model's regression needs scikit-learn, which is not installed; "
            "pip install metadef[tune]"
        ) from error
    made = ExtraTreesRegressor(trees, min_samples_leaf=2, max_features=0.5, random_state=0)
    made.fit(features, targets, sample_weight=weights)
    return flat(made.estimators_)


def group_folds(groups: Sequence[str], count: int) -> list[tuple[Array, Array]]:
    """Return (train, test) indices for each fold; no group is in both. The same each time."""
    order = sorted(set(groups))
    rng = np.random.default_rng(0)
    place = dict(zip(order, rng.permutation(len(order)), strict=True))
    fold = np.array([place[g] % count for g in groups])
    splits = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(count)]
    return [(train, test) for train, test in splits if len(train) and len(test)]
