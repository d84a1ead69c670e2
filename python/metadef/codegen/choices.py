"""The choices that there are for a kernel: its default, alternatives for a search, features.

space = choice_space(source.text)
for choice in space.candidates(): print(choice, space.features(choice))
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from metadef import ir
from metadef.cost.work import Work, kernel_work
from metadef.device.attribute import set_device
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError
from metadef.pass_runner import PassRunner
from metadef.passes._kernel_choice import CHOICE
from metadef.passes.loop_nests.alternatives import Alternatives
from metadef.passes.loop_nests.decisions import main_nest
from metadef.passes.loop_nests.features import nest_features
from metadef.passes.vectorize import generalize, nests_of, target_of
from metadef.pipelines import passes_of
from metadef.plan.kernel_choice import BY_RULE, KernelChoice

#: what a kernel's main nest, and the kernel, are in numbers: names as in `nest_features`, and
#: `flops`, `argument_bytes`, `result_bytes`, `nests` of the whole kernel
KernelFeatures = dict[str, float]

#: candidates of one kernel, at most
MOST_CANDIDATES = 256
#: what a symbol counts as where nobody says its value
_SYMBOL_VALUE = 64


@dataclass(eq=False)
class ChoiceSpace:
    """The choices for one kernel on one device. Holds the kernel's IR as long as it lives."""

    _context: ir.Context
    _module: ir.Module
    _work: Work
    _nests: int
    _found: Alternatives | None

    @property
    def default(self) -> KernelChoice:
        """What the rules choose, said in full; nothing where the kernel has no loop nest."""
        if self._found is None:
            return BY_RULE
        with self._context, ir.Location.unknown():
            return self._found.default

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that have a meaning for this kernel."""
        return () if self._found is None else tuple(self._found.fields)

    def candidates(self, limit: int = MOST_CANDIDATES) -> Iterator[KernelChoice]:
        """Yield legal choices in full, always in the same order: the default first, then those that
        differ from it in one way, in two, and so on."""
        if self._found is None:
            yield BY_RULE
            return
        found = islice(self._found.candidates(), limit)
        while True:
            with self._context, ir.Location.unknown():
                choice = next(found, None)
            if choice is None:
                return
            yield choice

    def in_full(self, choice: KernelChoice) -> KernelChoice:
        """Return a choice with what the rules make of the fields that it does not say.

        Raises:
            MetadefError: it is not legal here; names the field, the rule and the value.
        """
        if self._found is None:
            if choice != BY_RULE:
                raise MetadefError(f"{CHOICE}: expected nothing, as the kernel has no loop nest")
            return BY_RULE
        with self._context, ir.Location.unknown():
            return self._found.in_full(choice)

    def problem(self, choice: KernelChoice) -> str | None:
        """Return why a choice is not legal, or None where it is."""
        try:
            self.in_full(choice)
        except MetadefError as error:
            return str(error)
        return None

    def is_legal(self, choice: KernelChoice) -> bool:
        """Tell whether the kernel can be compiled with a choice."""
        return self.problem(choice) is None

    def features(
        self, choice: KernelChoice = BY_RULE, symbols: Mapping[str, int] | None = None
    ) -> KernelFeatures:
        """Return the kernel with a choice in numbers; `symbols` has values of its symbols.

        Raises:
            MetadefError: the choice is not legal here.
        """
        choice = self.in_full(choice)
        values = dict(symbols or {})
        with self._context, ir.Location.unknown():
            found = {} if self._found is None else nest_features(self._found, choice, values)
        dims = (*self._work.operations.values(), *self._work.reads, *self._work.writes)
        named = {name for dim in dims for name in dim.symbols}
        amounts = self._work.evaluate({n: values.get(n, _SYMBOL_VALUE) for n in named})
        return {
            "flops": amounts.flops,
            "argument_bytes": sum(amounts.reads),
            "result_bytes": sum(amounts.writes),
            "nests": self._nests,
            **found,
        }


def choice_space(text: str, spec: DeviceSpec | None = None) -> ChoiceSpace:
    """Return the choices for a kernel, whose `text` is that of `kernel_sources`, on its own device
    or on `spec`.

    Raises:
        MetadefError: the kernel cannot be lowered.
    """
    context = ir.make_context()
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        if spec is not None:
            set_device(module, spec)
        (function,) = module.body.operations
        if CHOICE in function.attributes:
            del function.attributes[CHOICE]
        work = kernel_work(function)
        PassRunner(verify=False).run(module, passes_of("kernel")[:2])
        generalize(module.operation)
        target = target_of(module.operation)
        nests = [
            nest
            for op in list(module.body.operations)
            if "sym_visibility" not in op.attributes
            for nest in nests_of(op, target)
        ]
        main = main_nest(nests)
        found = None if main is None else Alternatives(nests[main], target)
    return ChoiceSpace(context, module, work, len(nests), found)
