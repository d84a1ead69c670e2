"""A kernel's text with all that is known of it before it runs: what tables and models look at."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

from metadef import ir
from metadef.codegen.choices import ChoiceSpace, choice_space
from metadef.cost.kernel_traits import KernelTraits, kernel_traits
from metadef.cost.table.measurement import Measurement
from metadef.passes._kernel_choice import CHOICE
from metadef.passes._structure import kernel_key
from metadef.plan.kernel_choice import BY_RULE, KernelChoice


@dataclass(eq=False)
class DescribedKernel:
    """A kernel: its structure key, traits, and the choices that there are for it."""

    text: str
    structure: str
    traits: KernelTraits
    space: ChoiceSpace
    _default: KernelChoice | None = field(default=None, init=False)

    @property
    def default(self) -> KernelChoice:
        """What the rules choose, in full."""
        if self._default is None:
            self._default = self.space.default
        return self._default

    def moves(self, choice: KernelChoice) -> dict[str, object]:
        """Return the fields in which a full choice is not the default."""
        default = self.default.to_data()
        return {k: v for k, v in choice.to_data().items() if default.get(k) != v}

    def about(
        self,
        choice: KernelChoice,
        symbols: Mapping[str, int],
        threads: int,
        copies: int,
        device: str,
        compiler: str,
    ) -> Measurement:
        """Return all that a measurement of the kernel says but its times.

        Raises:
            MetadefError: the choice is not legal for the kernel.
        """
        by_rule = choice in (BY_RULE, self.default)
        choice = self.default if by_rule else self.space.in_full(choice)
        return Measurement(
            structure=self.structure,
            family=self.traits.family,
            kind=self.traits.kind,
            layout=self.traits.layout,
            precision=self.traits.precision,
            fused=self.traits.fused,
            threads=threads,
            copies=copies,
            device=device,
            compiler=compiler,
            sizes=self.traits.extents(symbols),
            symbols=dict(symbols),
            choice=choice.to_data(),
            moves=self.moves(choice),
            features=self.space.features(BY_RULE if by_rule else choice, symbols),
            text=text_key(self.text),
        )


def describe(text: str) -> DescribedKernel:
    """Return what is known of the kernel in a text of `kernel_sources`.

    Raises:
        MetadefError: the kernel cannot be lowered.
    """
    with ir.make_context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        (function,) = module.body.operations
        if CHOICE in function.attributes:
            del function.attributes[CHOICE]
        traits, key = kernel_traits(function), kernel_key(function)
    return DescribedKernel(text, key, traits, choice_space(text))


def text_key(text: str) -> str:
    """Return what a table keeps the text under."""
    return hashlib.sha256(text.encode()).hexdigest()
