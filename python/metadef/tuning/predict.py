"""What a search believes before it measures: times of a kernel's choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from metadef.frontend.default_plan import PlannableKernel
from metadef.frontend.options import Options
from metadef.plan.kernel_choice import KernelChoice

from .proxy import Predict
from .search import Predictor


def predictor_for(options: Options) -> Predictor:
    """Return what predicts for a device and number of threads."""

    def of_kernel(kernel: PlannableKernel, symbols: Mapping[str, int]) -> Predict:
        def predict(choices: Sequence[KernelChoice]) -> Sequence[float]:
            return [1.0 for _ in choices]

        return predict

    return of_kernel
