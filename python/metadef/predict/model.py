"""`CostModel`: what kernels will take on a device, by its performance table.

model = CostModel.load(this_device(), threads=1)
model.predict(source.text, choice, {"B": 8})            # Prediction(ns=..., source="measured", ...)
model.predict_many(source.text, choices)
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from metadef.codegen.version import code_version
from metadef.cost.model.fitted import FittedModel, learn
from metadef.cost.model.prediction import Prediction
from metadef.cost.table.measurement import Measurement
from metadef.cost.table.table import Table
from metadef.device.figures import Figures
from metadef.device.spec import DeviceSpec
from metadef.plan.kernel_choice import BY_RULE, KernelChoice
from metadef.runtime.cache import Cache, default_cache

from .described import DescribedKernel, describe
from .tables import default_table

#: kernels whose choices are kept: each holds its IR
_KEPT = 64


class CostModel:
    """Predicts what kernels take on a device with a number of threads.

    Made of a table's measurements on this device with this compiler; nothing else is read.
    """

    def __init__(
        self, spec: DeviceSpec, limits: Figures, threads: int, known: Iterable[Measurement] = ()
    ) -> None:
        self.spec, self.limits, self.threads = spec, limits, threads
        self._known = list(known)
        self._fitted: FittedModel | None = None
        self._described: OrderedDict[str, DescribedKernel] = OrderedDict()

    @staticmethod
    def load(
        spec: DeviceSpec,
        threads: int = 1,
        *,
        table: Path | None = None,
        cache: Cache | None = None,
        limits: Figures | None = None,
    ) -> CostModel:
        """Return the model by a table, by default the user's; fitted when it is first asked.

        The device's limits are measured where nobody did yet (some seconds).

        Raises:
            TableError: the table is damaged or of another version.
        """
        if limits is None:
            from metadef.measure.limits import device_limits

            limits = device_limits(spec, threads, cache or default_cache())
        with Table(table or default_table()) as opened:
            known = opened.find(device=spec.fingerprint(), compiler=code_version(), threads=threads)
        return CostModel(spec, limits, threads, known)

    @property
    def measurements(self) -> Sequence[Measurement]:
        """What it was made of."""
        return self._known

    @property
    def fitted(self) -> FittedModel:
        """The model of the measurements as they are now."""
        if self._fitted is None:
            self._fitted = learn(self._known, self.spec, self.limits)
        return self._fitted

    def predict(
        self,
        text: str,
        choice: KernelChoice = BY_RULE,
        symbols: Mapping[str, int] | None = None,
        *,
        copies: int = 1,
    ) -> Prediction:
        """Return what the kernel in a text of `kernel_sources` takes under a choice.

        Raises:
            MetadefError: the kernel cannot be lowered, or the choice is not legal for it.
        """
        return self.predict_many(text, [choice], symbols, copies=copies)[0]

    def predict_many(
        self,
        text: str,
        choices: Sequence[KernelChoice],
        symbols: Mapping[str, int] | None = None,
        *,
        copies: int = 1,
    ) -> list[Prediction]:
        """Return what a kernel takes under each of several choices.

        Raises:
            MetadefError: the kernel cannot be lowered, or a choice is not legal for it.
        """
        default = self.about(text, BY_RULE, symbols, copies)
        abouts = [self.about(text, c, symbols, copies) for c in choices]
        return self.fitted.predict(abouts, [default] * len(abouts))

    def about(
        self,
        text: str,
        choice: KernelChoice = BY_RULE,
        symbols: Mapping[str, int] | None = None,
        copies: int = 1,
    ) -> Measurement:
        """Return what a measurement of the kernel would say but its times."""
        device = self.spec.fingerprint()
        kernel = self.describe(text)
        return kernel.about(choice, symbols or {}, self.threads, copies, device, code_version())

    def describe(self, text: str) -> DescribedKernel:
        """Return what is known of a kernel before it runs; the last ones are kept."""
        if text not in self._described:
            self._described[text] = describe(text)
            if len(self._described) > _KEPT:
                self._described.popitem(last=False)
        self._described.move_to_end(text)
        return self._described[text]

    def mine(self, measurements: Iterable[Measurement]) -> list[Measurement]:
        """Return those of this device, compiler and number of threads: others never answer here."""
        mine = (self.spec.fingerprint(), code_version(), self.threads)
        return [m for m in measurements if (m.device, m.compiler, m.threads) == mine]

    def update(self, measurements: Iterable[Measurement]) -> None:
        """Take new measurements into account, of this device, compiler and number of threads.

        Exact answers and neighbours follow at once, the regression when it is next loaded.
        """
        new = self.mine(measurements)
        self._known += new
        if self._fitted is not None and new:
            self._fitted = self._fitted.with_measurements(self._known)
