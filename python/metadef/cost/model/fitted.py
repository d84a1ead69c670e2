"""A model of one device's kernels, on measurements as data: level one, level two, the roofline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from metadef.cost.table.measurement import Measurement
from metadef.device.figures import Figures
from metadef.device.spec import DeviceSpec

from .analytic import roofline
from .evidence import Memory
from .prediction import INTERPOLATED, MEASURED, REGRESSION, ROOFLINE, Prediction
from .regression import LEAST, Regression, fit
from .vector import vectors

#: how far off the roofline alone is: a factor of about four
_ROOFLINE_SPREAD = 2.0


@dataclass(frozen=True)
class FittedModel:
    """Predicts from measurements of one device with one compiler; `learn` makes it."""

    spec: DeviceSpec
    limits: Figures
    memory: Memory
    regression: Regression | None

    def predict(
        self, abouts: Sequence[Measurement], *, exact: bool = True, evidence: bool = True
    ) -> list[Prediction]:
        """Return a prediction for each kernel, which says nothing of times yet.

        Without `exact` a kernel counts as not measured in its own sizes, without `evidence` only
        the regression and the roofline are asked.
        """
        if not abouts:
            return []
        bounds = [roofline(about, self.spec, self.limits) for about in abouts]
        logs = np.array([math.log2(b.ns) for b in bounds])
        spreads = np.full(len(abouts), _ROOFLINE_SPREAD)
        source = ROOFLINE
        if self.regression is not None:
            ratios, spreads = self.regression.predict(vectors(abouts, self.spec, self.limits))
            logs, source = logs + ratios, REGRESSION
        found = []
        for about, bound, log_ns, spread in zip(abouts, bounds, logs, spreads, strict=True):
            told = (float(log_ns), float(spread), source, False)
            known = self.memory.answer(about, exact=exact) if evidence else None
            if known is not None and known.exact:
                told = (known.log_ns, known.spread, MEASURED, known.noisy)
            elif known is not None and known.spread < spread:
                told = (float(log_ns) + known.log_ns, known.spread, INTERPOLATED, known.noisy)
            ns = 2.0 ** told[0]
            found.append(Prediction(ns, told[2], 2.0 ** told[1] - 1, bound.by, told[3]))
        return found

    def with_measurements(self, measurements: Sequence[Measurement]) -> FittedModel:
        """Return the model with the same regression and these measurements as evidence."""
        good = usable(measurements)
        targets = np.array([_ratio(m, self.spec, self.limits) for m in good])
        if self.regression is not None and good:
            features = vectors(good, self.spec, self.limits)
            targets = targets - self.regression.predict(features)[0]
        return replace(self, memory=Memory(good, targets))


def usable(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return the measurements that have times."""
    return [m for m in measurements if m.failed is None and m.best_ns > 0]


def learn(
    measurements: Sequence[Measurement],
    spec: DeviceSpec,
    limits: Figures,
    *,
    spread: bool = True,
) -> FittedModel:
    """Fit a model to measurements; those that failed are left out, flagged ones weigh less.

    With few of them the roofline answers for what is not known. Without `spread` nobody finds out
    how far off the regression is.
    """
    good = usable(measurements)
    regression = None
    if len(good) >= LEAST:
        targets = np.array([_ratio(m, spec, limits) for m in good])
        regression = fit(good, vectors(good, spec, limits), targets, spread=spread)
    return FittedModel(spec, limits, Memory((), ()), regression).with_measurements(good)


def _ratio(m: Measurement, spec: DeviceSpec, limits: Figures) -> float:
    """Return log2 of measured / roofline."""
    return math.log2(m.best_ns / roofline(m, spec, limits).ns)
