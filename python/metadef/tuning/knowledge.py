"""What a search knows of kernels before it measures, and learns when it has: the cost model."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from metadef.cost.table.table import Table
from metadef.frontend.model_kernels import ModelKernel
from metadef.frontend.options import Options
from metadef.measure.alone import Outcome
from metadef.plan.kernel_choice import KernelChoice
from metadef.predict.described import text_key
from metadef.predict.model import CostModel
from metadef.predict.outcomes import as_measurement
from metadef.predict.tables import default_table

from .proxy import Predict


@dataclass(eq=False)
class Knowledge:
    """The user's performance table and the model made of it, for a device and threads.

    Several threads may ask at once.
    """

    options: Options
    _lock: threading.RLock = field(default_factory=threading.RLock)

    @cached_property
    def _model(self) -> CostModel:
        return CostModel.load(self.options.device, self.options.threads, cache=self.options.cache)

    def predictor(self, kernel: ModelKernel, symbols: Mapping[str, int], copies: int) -> Predict:
        """Return what predicts the ns of one run of a kernel under choices."""

        def predict(choices: Sequence[KernelChoice]) -> Sequence[float]:
            with self._lock:
                found = self._model.predict_many(
                    kernel.source.text, choices, symbols, copies=copies
                )
            return [prediction.ns for prediction in found]

        return predict

    def learn(
        self,
        kernel: ModelKernel,
        symbols: Mapping[str, int],
        copies: int,
        outcomes: Sequence[tuple[KernelChoice, Outcome]],
    ) -> None:
        """Keep what was measured in the table, and take it into account from now on."""
        text = kernel.source.text
        with self._lock:
            found = [
                as_measurement(self._model.about(text, choice, symbols, copies), outcome)
                for choice, outcome in outcomes
            ]
            with Table(default_table()) as table:
                table.record(found, {text_key(text): text})
            self._model.update(found)
