"""What a pass is: a frozen dataclass whose fields are its options, and the pipeline that runs it.

Pass `fuse-pointwise` is `passes/fuse_pointwise.py`, class `FusePointwise`; it is imported on demand
from its name, so there is no registry to keep. Its text form, `fuse-pointwise{max-ops=8}`, round-trips.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.resources
from dataclasses import dataclass
from typing import Any, ClassVar

from metadef import ir
from metadef.diagnostics import MetadefError, near_names


@dataclass(frozen=True)
class Pass:
    """Base of passes: subclasses are frozen dataclasses with options as fields, and `run`."""

    #: what the pass needs and leaves, one line each, shown by `metadef-opt --explain`
    requires: ClassVar[str] = "any module"
    leaves: ClassVar[str] = "the same kind of module"

    def run(self, module: ir.Operation) -> None:
        """Transform `module` (a `builtin.module`) in place."""
        raise AssertionError(f"pass {self.name()} does not define run")

    @classmethod
    def name(cls) -> str:
        """The kebab-case name: `FusePointwise` is `fuse-pointwise`."""
        return "".join("-" + c.lower() if c.isupper() else c for c in cls.__name__).lstrip("-")

    def __str__(self) -> str:
        options = [
            f"{f.name.replace('_', '-')}={_option_text(getattr(self, f.name))}"
            for f in dataclasses.fields(self)
            if getattr(self, f.name) != f.default
        ]
        return self.name() + ("{" + " ".join(options) + "}" if options else "")


def pass_names() -> list[str]:
    """Return the names of all built-in passes, sorted."""
    folder = importlib.resources.files("metadef.passes")
    return sorted(
        f.name[:-3].replace("_", "-")
        for f in folder.iterdir()
        if f.name.endswith(".py") and not f.name.startswith("_")
    )


def find_pass(name: str) -> type[Pass]:
    """Return the class of the pass called `name`.

    Raises:
        MetadefError: no such pass; the near names are listed.
    """
    if name not in pass_names():
        raise MetadefError(f"unknown pass '{name}'{near_names(name, pass_names())}")
    module = importlib.import_module("metadef.passes." + name.replace("-", "_"))
    cls = getattr(module, "".join(part.capitalize() for part in name.split("-")))
    assert issubclass(cls, Pass)
    return cls


def run_passes(module: ir.Module, passes: list[Pass]) -> None:
    """Run passes on a module one after another (no printing; see `PassRunner` for the rest)."""
    with module.context, ir.Location.unknown():
        for p in passes:
            p.run(module.operation)


def _option_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
