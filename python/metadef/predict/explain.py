"""What a model believes of a kernel: the default and the other choices, the best first."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

from metadef.cost.model.prediction import Prediction
from metadef.frontend.model_kernels import ModelKernel
from metadef.plan.decision import choice_text

from .model import CostModel


@dataclass(frozen=True)
class Other:
    """A choice that is not the default: what differs in it, and what it is predicted to take."""

    moves: dict[str, Any]
    predicted: Prediction


@dataclass(frozen=True)
class Explained:
    """A kernel, what it is predicted to take by default, and other choices, the best first."""

    kernel: ModelKernel
    chosen: Prediction
    others: tuple[Other, ...]

    def line(self, other: Other) -> str:
        """Return a choice on one line, with its time beside the default's."""
        ratio = other.predicted.ns / self.chosen.ns
        return f"{ratio:.2f} times as long: {choice_text(other.moves)}"


def explain(model: CostModel, kernel: ModelKernel, choices: int) -> Explained:
    """Predict a kernel under its default and up to so many choices.

    Raises:
        MetadefError: the kernel cannot be lowered.
    """
    described = model.describe(kernel.source.text)
    tried = list(islice(described.space.candidates(), choices))
    chosen, *others = model.predict_many(kernel.source.text, tried)
    found = [Other(described.moves(c), p) for c, p in zip(tried[1:], others, strict=True)]
    found.sort(key=lambda other: other.predicted.ns)
    return Explained(kernel, chosen, tuple(found))
