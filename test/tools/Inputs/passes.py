"""Passes that the tests of metadef-opt load."""

from dataclasses import dataclass

from metadef import ir
from metadef.diagnostics import MetadefError
from metadef.pipeline import Pass


@dataclass(frozen=True)
class Mark(Pass):
    """Write `count` as the attribute `attribute` of the module."""

    attribute: str = "test.mark"
    count: int = 1

    def run(self, module: ir.Operation) -> None:
        module.attributes[self.attribute] = ir.IntegerAttr.get(
            ir.IntegerType.get_signless(64), self.count
        )


@dataclass(frozen=True)
class Refuse(Pass):
    """Refuse every module, as a pass does that meets a user's mistake."""

    def run(self, module: ir.Operation) -> None:
        raise MetadefError("'builtin.module' op: expected another one")


@dataclass(frozen=True)
class BreakInvariant(Pass):
    """Fail as a pass does that has a bug."""

    def run(self, module: ir.Operation) -> None:
        raise AssertionError("two kernels have one name")


@dataclass(frozen=True)
class BreakModule(Pass):
    """Leave a module that does not verify: @f without its return."""

    def run(self, module: ir.Operation) -> None:
        function = ir.entry_block(module).operations[0]
        ir.entry_block(function).operations[-1].operation.erase()
