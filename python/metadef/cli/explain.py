"""`metadef-opt --list` and `--explain`: what passes and pipelines there are, and what each does."""

from __future__ import annotations

import ast
import dataclasses
import importlib.resources
import inspect

from metadef import ir
from metadef.pass_options import default_of, options_of, type_text, value_text
from metadef.pipeline import (
    Pass,
    UpstreamPass,
    class_name_of,
    find_pass,
    find_step,
    pass_names,
    user_pass_names,
)
from metadef.pipelines import PIPELINES


def summary_of(name: str) -> str:
    """Return the first line of the docstring of a pass; a built-in one is read, not imported."""
    if name in user_pass_names():
        doc = inspect.getdoc(find_pass(name))
    else:
        file = importlib.resources.files("metadef.passes") / f"{name.replace('-', '_')}.py"
        classes = (n for n in ast.parse(file.read_text()).body if isinstance(n, ast.ClassDef))
        doc = next((ast.get_docstring(c) for c in classes if class_name_of(name) == c.name), None)
    return doc.partition("\n")[0] if doc else ""


def list_text() -> str:
    """Return the names of all passes and pipelines with a line for each."""
    loaded = user_pass_names()
    built_in = [name for name in pass_names() if name not in loaded]
    lines = ["Passes:", *_rows(built_in)]
    if loaded:
        lines += ["", "Loaded passes:", *_rows(loaded)]
    lines += ["", "Pipelines:"]
    for name, stages in PIPELINES.items():
        lines.append(f"  {name:<28} {len(stages)} stages, {stages[0].name} to {stages[-1].name}")
    lines += ["", "Every pass of MLIR and torch-mlir is known too: canonicalize, cse, ..."]
    return "\n".join(lines)


def explain_text(name: str) -> str:
    """Return what the pass or pipeline called `name` does.

    Raises:
        MetadefError: there is neither a pass nor a pipeline of that name.
    """
    if name in PIPELINES:
        rows = [f"  {s.name:<28} {s.reason}" for s in PIPELINES[name]]
        return "\n".join([f"pipeline {name}", "", *rows])
    step = find_step(name) if name not in pass_names() else None
    if isinstance(step, UpstreamPass):
        with ir.Context():
            shown = str(step.manager())
        about = "A pass of MLIR or torch-mlir; its place and its default options:"
        return f"{name}\n\n{about}\n\n  {shown}"
    return pass_text(find_pass(name))


def pass_text(cls: type[Pass]) -> str:
    """Return the docstring, the options, and what the pass requires and leaves."""
    doc = inspect.getdoc(cls) if cls.__doc__ else None
    lines = [cls.name(), "", doc or "(no docstring)", ""]
    lines += [f"Requires: {cls.requires}", f"Leaves:   {cls.leaves}"]
    options = options_text_of(cls)
    if options:
        lines += ["", "Options:", *(f"  {line}" for line in options)]
    return "\n".join(lines)


def options_text_of(cls: type[Pass]) -> list[str]:
    """Return `name=default  type  what it is` for each option that text can give.

    The last part is the field's metadata entry `help`, if it has one.
    """
    lines = []
    for key, (option, kind) in options_of(cls).items():
        default = default_of(option)
        shown = f"{key}=..." if default is dataclasses.MISSING else f"{key}={value_text(default)}"
        about = option.metadata.get("help", "")
        lines.append(f"{shown:<28} {type_text(kind)}{': ' + about if about else ''}")
    return lines


def _rows(names: list[str]) -> list[str]:
    return [f"  {name:<28} {summary_of(name)}" for name in names]
