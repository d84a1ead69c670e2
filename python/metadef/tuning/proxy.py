"""Ranks choices by what they are predicted to cost, with Optuna's samplers proposing them.

Half of the trials are proposed by TPE (Bergstra et al., 2011), half by an evolutionary sampler
that keeps its best (NSGA-II; Deb et al., 2002, with one objective). Nothing is measured here, so
that the same seed gives the same ranking.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from metadef.plan.kernel_choice import KernelChoice, choice_from_data

if TYPE_CHECKING:
    import optuna

    from metadef.codegen.choices import ChoiceSpace

#: returns a time for each choice: only their ratios count
Predict = Callable[[Sequence[KernelChoice]], Sequence[float]]

#: neighbours of the default that are looked at in any case, and from which values are taken
_NEIGHBOURS = 48
_POPULATION = 16


@dataclass(frozen=True)
class Ranked:
    """A choice with its predicted time."""

    choice: KernelChoice
    predicted: float


def rank(space: ChoiceSpace, predict: Predict, trials: int, seed: int) -> list[Ranked]:
    """Return the default, then the other choices that were looked at, the best predicted first."""
    near = list(islice(space.candidates(), _NEIGHBOURS))
    found = dict(zip(near, predict(near), strict=True))
    default = near[0]
    values = _values(near)
    if any(len(options) > 1 for options in values.values()):
        for sampler in _samplers(seed):
            for choice in _proposals(space, predict, values, found, sampler, trials // 2):
                assert choice in found
    others = sorted((c for c in found if c != default), key=lambda c: found[c])
    return [Ranked(choice, found[choice]) for choice in (default, *others)]


def _proposals(
    space: ChoiceSpace,
    predict: Predict,
    values: dict[str, list[str]],
    found: dict[KernelChoice, float],
    sampler: optuna.samplers.BaseSampler,
    trials: int,
) -> Iterator[KernelChoice]:
    """Yield the legal choices that a sampler proposes, after noting their predictions."""
    import optuna

    optuna.logging.set_verbosity(logging.ERROR)
    study = optuna.create_study(sampler=sampler)
    default = next(iter(found))
    study.enqueue_trial({name: _text(getattr(default, name)) for name in values})
    for _ in range(trials):
        trial = study.ask()
        said = {name: json.loads(trial.suggest_categorical(name, o)) for name, o in values.items()}
        choice = choice_from_data({k: v for k, v in said.items() if v is not None}, "search")
        if not space.is_legal(choice):
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
            continue
        if choice not in found:
            found[choice] = predict([choice])[0]
        study.tell(trial, found[choice])
        yield choice


def _samplers(seed: int) -> Iterator[optuna.samplers.BaseSampler]:
    import optuna

    yield optuna.samplers.TPESampler(seed=seed)
    yield optuna.samplers.NSGAIISampler(population_size=_POPULATION, seed=seed)


def _values(near: Sequence[KernelChoice]) -> dict[str, list[str]]:
    """Return what each field may be, as JSON: Optuna takes no lists."""
    fields = near[0].said
    return {name: sorted({_text(getattr(c, name)) for c in near}) for name in fields}


def _text(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, tuple) else value)
