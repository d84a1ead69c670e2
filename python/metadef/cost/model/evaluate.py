"""How good a model is on kernels that it has not seen: for each kind, errors and ranks."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from metadef.cost.table.measurement import Measurement
from metadef.device.figures import Figures
from metadef.device.spec import DeviceSpec

from .fitted import FittedModel, defaults_among, learn, usable
from .prediction import INTERPOLATED, MEASURED, REGRESSION
from .regression import FOLDS, group_folds

ALL = "all"
#: fewer choices of one kernel have no order worth a figure
_LEAST_CHOICES = 4
_LEVEL_ONE = {
    "level one": (MEASURED, INTERPOLATED),
    "level one, measured": (MEASURED,),
    "level one, interpolated": (INTERPOLATED,),
}


@dataclass(frozen=True)
class Score:
    """Of `count` measurements of `kernels` kernels: the mean absolute error relative to the
    measured time (MAPE), its median, Spearman's rank correlation over all of them, and the mean of
    that over the choices of each kernel; None where there are too few."""

    level: str
    kind: str
    kernels: int
    count: int
    mape: float
    median: float
    spearman: float | None
    within: float | None


@dataclass(frozen=True)
class _Pair:
    about: Measurement
    predicted: float

    @property
    def error(self) -> float:
        return abs(self.predicted / self.about.best_ns - 1)


def evaluate(measurements: Sequence[Measurement], spec: DeviceSpec, limits: Figures) -> list[Score]:
    """Return scores of level one, each size left out in its turn, and of level two, on kernels that
    are in no fold that it was fitted to. Flagged measurements are no yardstick: they are learnt
    from, and not judged by."""
    good = usable(measurements)
    defaults = _defaults(good)
    one: list[_Pair] = []
    two: list[_Pair] = []
    for train, test in group_folds([m.structure for m in good], FOLDS):
        fold = learn([good[i] for i in train], spec, limits)
        held, given = [good[i] for i in test], [defaults[i] for i in test]
        told = fold.predict(held, given, evidence=False)
        two += [_Pair(m, p.ns) for m, p in zip(held, told, strict=True)]
        # The regression knows none of these kernels; the neighbours are all but the sizes asked.
        told = fold.with_measurements(good).predict(held, given, exact=False)
        pairs = zip(held, told, strict=True)
        one += [_Pair(m, p.ns) for m, p in pairs if p.source == INTERPOLATED]
    return [*_scores("level one, left out", one), *_scores("level two, held out", two)]


def judge(
    model: FittedModel, known: Iterable[Measurement], others: Sequence[Measurement]
) -> list[Score]:
    """Return scores of a model on measurements of `others`.

    Level one where the table has the same kernel, `measured`, or neighbours of it, both together
    and each; level two on those whose kernels are not among the `known`, and on choices of known
    ones that level one leaves to it.
    """
    seen = {m.structure for m in known}
    good = usable(others)
    told = model.predict(good, _defaults(good))
    found = []
    for level, sources in _LEVEL_ONE.items():
        pairs = [_Pair(m, p.ns) for m, p in zip(good, told, strict=True) if p.source in sources]
        found += _scores(level, pairs)
    left = [m.structure in seen and p.source == REGRESSION for m, p in zip(good, told, strict=True)]
    pairs = [_Pair(m, p.ns) for m, p, is_left in zip(good, told, left, strict=True) if is_left]
    found += _scores("level two, choices of known kernels", pairs)
    alone = model.predict(good, _defaults(good), evidence=False)
    pairs = [_Pair(m, p.ns) for m, p in zip(good, alone, strict=True) if m.structure not in seen]
    return [*found, *_scores("level two, unseen", pairs)]


def _defaults(measurements: Sequence[Measurement]) -> list[Measurement | None]:
    return [None if i is None else measurements[i] for i in defaults_among(measurements)]


def _scores(level: str, pairs: Sequence[_Pair]) -> list[Score]:
    pairs = [pair for pair in pairs if not pair.about.flagged]
    by_kind: dict[str, list[_Pair]] = defaultdict(list)
    for pair in pairs:
        by_kind[pair.about.kind].append(pair)
    found = [_score(level, kind, of_kind) for kind, of_kind in sorted(by_kind.items())]
    return [*found, _score(level, ALL, pairs)] if pairs else []


def _score(level: str, kind: str, pairs: Sequence[_Pair]) -> Score:
    errors = [pair.error for pair in pairs]
    kernels: dict[object, list[_Pair]] = defaultdict(list)
    for pair in pairs:
        m = pair.about
        kernels[(m.structure, str(m.symbols), m.threads, min(m.copies, 2))].append(pair)
    within = [_spearman(group) for group in kernels.values() if len(group) >= _LEAST_CHOICES]
    ranked = [rank for rank in within if rank is not None]
    return Score(
        level=level,
        kind=kind,
        kernels=len({pair.about.structure for pair in pairs}),
        count=len(pairs),
        mape=float(np.mean(errors)),
        median=float(np.median(errors)),
        spearman=_spearman(pairs) if len(pairs) >= _LEAST_CHOICES else None,
        within=float(np.mean(ranked)) if ranked else None,
    )


def _spearman(pairs: Sequence[_Pair]) -> float | None:
    """Return the correlation of the ranks (Spearman, 1904), None where one side is constant."""
    ranks = [
        _ranks([pair.about.best_ns for pair in pairs]),
        _ranks([pair.predicted for pair in pairs]),
    ]
    a, b = (r - r.mean() for r in ranks)
    scale = math.sqrt(float((a * a).sum() * (b * b).sum()))
    return float((a * b).sum()) / scale if scale else None


def _ranks(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the ranks, equal values with the mean of theirs."""
    found, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    return ((ends - counts + ends - 1) / 2)[inverse]
