"""A model of one device's kernels, on measurements as data: level one, level two, the roofline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from metadef.cost.roofline import Bound
from metadef.cost.table.measurement import Measurement, canonical
from metadef.device.figures import Figures
from metadef.device.spec import DeviceSpec

from .analytic import home, roofline
from .evidence import Evidence, Memory
from .prediction import INTERPOLATED, MEASURED, REGRESSION, ROOFLINE, Prediction
from .regression import LEAST, Regression, fit
from .vector import vectors

#: how far off the roofline alone is: a factor of about four
_ROOFLINE_SPREAD = 2.0
#: Neighbours and the regression, which know little of each other, answer together where they are no
#: farther apart than this, in log2. On a calibration on Zen 3, each size left out, neighbours are
#: off by 7 % there and by 20 % elsewhere.
_AGREE = 0.25
#: Where an answer by way of the default is off by more, in log2, it is none of level one: what is
#: known of the default in other sizes is left, and of a measured one the regression says the rest.
_MOST_SPREAD = 0.3
#: how far a choice is from the default where no regression says it
_CHOICE_SPREAD = 1.0


@dataclass(frozen=True)
class FittedModel:
    """Predicts from measurements of one device with one compiler; `learn` makes it."""

    spec: DeviceSpec
    limits: Figures
    memory: Memory
    regression: Regression | None

    def predict(
        self,
        abouts: Sequence[Measurement],
        defaults: Sequence[Measurement | None] | None = None,
        *,
        exact: bool = True,
        evidence: bool = True,
    ) -> list[Prediction]:
        """Return a prediction for each kernel under a choice, which says nothing of times yet;
        `defaults` are the same kernels by default, where somebody knows them.

        Without `exact` a kernel counts as not measured in its own sizes, without `evidence` only
        the regression and the roofline are asked.
        """
        if not abouts:
            return []
        bounds = [roofline(about, self.spec, self.limits) for about in abouts]
        logs = np.array([math.log2(b.ns) for b in bounds])
        spreads, source = np.full(len(abouts), _ROOFLINE_SPREAD), ROOFLINE
        ratios, apart = np.zeros(len(abouts)), np.full(len(abouts), _CHOICE_SPREAD)
        if self.regression is not None:
            base = [d or a for a, d in zip(abouts, defaults or abouts, strict=True)]
            features, of_default = (vectors(m, self.spec, self.limits) for m in (abouts, base))
            found, spreads = self.regression.predict(features, of_default)
            ratios, apart = self.regression.ratio(features, of_default)
            logs, source = logs + found, REGRESSION
        return [
            self._told(
                _Asked(about, defaults[k] if defaults else None, exact, evidence),
                Prediction(2.0 ** float(logs[k]), source, float(spreads[k]), bounds[k].by),
                float(ratios[k]),
                float(apart[k]),
                bounds[k],
            )
            for k, about in enumerate(abouts)
        ]

    def _told(
        self, asked: _Asked, by_model: Prediction, ratio: float, apart: float, bound: Bound
    ) -> Prediction:
        """Return what evidence says, or the model where that is less sure; spreads are log2."""
        best = by_model
        known = self.memory.answer(asked.about, exact=asked.exact) if asked.evidence else None
        if known is not None and known.exact:
            best = replace(best, ns=2.0**known.log_ns, source=MEASURED, noisy=known.noisy)
            return replace(best, uncertainty=2.0**known.spread - 1)
        known = known or self._by_default(asked, ratio, apart)
        if known is not None and self._agrees(bound.ns * 2.0**known.log_ns, by_model):
            ns = bound.ns * 2.0**known.log_ns
            spread = min(known.spread, by_model.uncertainty)
            best = replace(by_model, ns=ns, source=INTERPOLATED, uncertainty=spread)
            best = replace(best, noisy=known.noisy)
        base = asked.default
        known = self.memory.answer(base) if asked.exact and asked.evidence and base else None
        if known is not None and known.exact:
            spread = math.hypot(apart, known.spread)
            if spread < best.uncertainty:
                unsure = self.regression is not None and spread > _MOST_SPREAD
                source = REGRESSION if unsure else INTERPOLATED
                best = replace(best, ns=2.0 ** (known.log_ns + ratio), source=source)
                best = replace(best, uncertainty=spread, noisy=known.noisy)
        return replace(best, uncertainty=2.0**best.uncertainty - 1)

    def _by_default(self, asked: _Asked, ratio: float, apart: float) -> Evidence | None:
        """Return what is known of the kernel by default in other sizes, and what the regression
        says that the choice makes of it, if both are sure enough."""
        if not asked.evidence or asked.default is None or self.regression is None:
            return None
        known = self.memory.answer(asked.default, exact=False)
        if known is None or (spread := math.hypot(known.spread, apart)) > _MOST_SPREAD:
            return None
        return replace(known, log_ns=known.log_ns + ratio, spread=spread)

    def _agrees(self, ns: float, by_model: Prediction) -> bool:
        return self.regression is None or abs(math.log2(ns / by_model.ns)) <= _AGREE

    def with_measurements(self, measurements: Sequence[Measurement]) -> FittedModel:
        """Return the model with the same regression and these measurements as evidence."""
        good = usable(measurements)
        ratios = [_ratio(m, self.spec, self.limits) for m in good]
        return replace(self, memory=Memory(good, ratios, partial(home, spec=self.spec)))


@dataclass(frozen=True)
class _Asked:
    """What is to be predicted, the same kernel by default, and what may be looked at."""

    about: Measurement
    default: Measurement | None
    exact: bool
    evidence: bool


def defaults_among(measurements: Sequence[Measurement]) -> list[int | None]:
    """Return for each measurement where that of the same kernel by default is, the last of them."""

    def run(m: Measurement) -> tuple[object, ...]:
        return m.structure, canonical(m.symbols), m.threads, min(m.copies, 2)

    found = {run(m): i for i, m in enumerate(measurements) if not m.moves}
    return [found.get(run(m)) for m in measurements]


def usable(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return the measurements that have times, but no flagged one of what was measured better."""
    good = [m for m in measurements if m.failed is None and m.best_ns > 0]
    steady = {m.place for m in good if not m.flagged}
    return [m for m in good if not m.flagged or m.place not in steady]


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
        features = vectors(good, spec, limits)
        regression = fit(good, features, targets, defaults_among(good), spread=spread)
    nothing = Memory((), (), partial(home, spec=spec))
    return FittedModel(spec, limits, nothing, regression).with_measurements(good)


def _ratio(m: Measurement, spec: DeviceSpec, limits: Figures) -> float:
    """Return log2 of measured / roofline."""
    return math.log2(m.best_ns / roofline(m, spec, limits).ns)
