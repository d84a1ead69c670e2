"""What can be watched while passes run: IR before and after each pass, and the time each took."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from metadef import ir

#: in `Printing.before` and `Printing.after`: every pass
ALL = frozenset({"*"})


@dataclass(frozen=True)
class Printing:
    """Which IR is printed, how and where; `before` and `after` hold pass names, or are `ALL`.

    With `ir_dir` the IR goes to numbered files there, not to `stream` (standard error if None);
    if neither `before` nor `after` selects a pass, the IR after every pass goes there.
    """

    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    ir_dir: Path | None = None
    generic: bool = False
    debug_info: bool = False
    stream: TextIO | None = None

    @property
    def is_on(self) -> bool:
        """Say whether anything is printed at all."""
        return bool(self.before or self.after or self.ir_dir is not None)

    def show_before(self, index: int, name: str, text: str, module: ir.Operation) -> None:
        """Print `module` if `before` selects pass `name`; `text` is the pass with its options."""
        if self.before & {"*", name}:
            self._show("Before", index, name, text, module)

    def show_after(self, index: int, name: str, text: str, module: ir.Operation) -> None:
        """Print `module` if `after` selects pass `name` or everything goes to `ir_dir`."""
        everything = self.ir_dir is not None and not self.before and not self.after
        if everything or self.after & {"*", name}:
            self._show("After", index, name, text, module)

    def _show(self, when: str, index: int, name: str, text: str, module: ir.Operation) -> None:
        asm = module.get_asm(enable_debug_info=self.debug_info, print_generic_op_form=self.generic)
        dump = f"// -----// IR Dump {when} {text} //----- //\n{asm.rstrip()}\n"
        if self.ir_dir is None:
            print(dump, file=self.stream or sys.stderr)
            return
        self.ir_dir.mkdir(parents=True, exist_ok=True)
        suffix = "-before" if when == "Before" else ""
        (self.ir_dir / f"{index:02}-{name}{suffix}.mlir").write_text(dump)


@dataclass
class Timing:
    """Wall time as a tree; `add` files seconds under a path of names, in order of arrival."""

    name: str = ""
    seconds: float = 0.0
    children: list[Timing] = field(default_factory=list)

    def add(self, path: Iterable[str], seconds: float) -> None:
        """Add `seconds` to the last entry of `path` and to all above it.

        The last name always makes a new entry; one above it joins the newest entry of its name.
        """
        self.seconds += seconds
        first, *rest = path
        if not rest or not self.children or self.children[-1].name != first:
            self.children.append(Timing(first))
        if rest:
            self.children[-1].add(rest, seconds)
        else:
            self.children[-1].seconds += seconds

    def report(self) -> str:
        """Return the tree as mlir-opt prints it: seconds, share of the total, name."""
        rule = "===" + "-" * 73 + "==="
        lines = [rule, "... Execution time report ...".center(len(rule)).rstrip(), rule]
        lines += [f"  Total Execution Time: {self.seconds:.4f} seconds", ""]
        lines += ["  ----Wall Time----  ----Name----"]
        lines += self._rows(0, self.seconds or 1.0)
        lines += [f"  {self.seconds:9.4f} (100.0%)  Total"]
        return "\n".join(lines)

    def _rows(self, depth: int, total: float) -> list[str]:
        rows = []
        for child in self.children:
            share = 100 * child.seconds / total
            rows.append(f"  {child.seconds:9.4f} ({share:5.1f}%)  {'  ' * depth}{child.name}")
            rows += child._rows(depth + 1, total)
        return rows
