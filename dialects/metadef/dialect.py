"""The `metadef` dialect and its one attribute, symbolic dims on a tensor's type."""

import importlib
import importlib.resources

from metadef import ir


class MetadefDialect(ir.ext.Dialect, name="metadef"):  # type: ignore[call-arg]
    """Tensor operators with symbolic dims."""


class DimsAttr(MetadefDialect.Attribute, name="dims"):  # type: ignore[call-arg, name-defined]
    """`#metadef.dims<["B", "S + 1", 768]>`: each dim of a tensor, an expression or an integer."""

    dims: ir.ArrayAttr


def op_modules() -> list[str]:
    """Return the names of the modules in ops/, one for each op, sorted."""
    folder = importlib.resources.files("metadef.dialects.metadef.ops")
    return sorted(
        f.name[:-3]
        for f in folder.iterdir()
        if f.name.endswith(".py") and not f.name.startswith("_")
    )


def import_ops() -> None:
    """Import every op module, which adds its op to the dialect."""
    for name in op_modules():
        importlib.import_module(f"metadef.dialects.metadef.ops.{name}")
