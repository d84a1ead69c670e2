"""What a pass is: a frozen dataclass whose fields are its options, and the pipeline that runs it.

Pass `fuse-pointwise` is `passes/fuse_pointwise.py`, class `FusePointwise`; it is imported on demand
from its name, so there is no registry to keep. Its text form, `fuse-pointwise{max-ops=8}`,
round-trips. A pipeline mixes passes written in Python with MLIR's own, which nest:
`builtin.module(fuse-pointwise{max-ops=4},func.func(canonicalize,cse))`.
"""

from __future__ import annotations

import functools
import importlib
import importlib.resources
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from metadef import ir
from metadef.diagnostics import MetadefError, near_names
from metadef.forms import Form
from metadef.instrumentation import Printing, Timing
from metadef.pass_options import options_text, parse_options
from metadef.pass_runner import PassRunner, Step
from metadef.pipeline_text import Element, read_pipeline


@dataclass(frozen=True)
class Pass:
    """Base of passes: subclasses are frozen dataclasses with options as fields, and `run`."""

    #: the form of IR that the pass is written for; None: any
    accepts: ClassVar[Form | None] = None
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

    def path(self) -> tuple[str, ...]:
        """Return the ops the pass nests in: none, it takes the module."""
        return ()

    def misfit(self, module: ir.Operation) -> str | None:
        """Return what of `module` is not of the form that the pass accepts, or None."""
        problem = self.accepts.misfit(module) if self.accepts is not None else None
        return problem and f"pass '{self}' takes {self.requires}: {problem}"

    def __str__(self) -> str:
        return self.name() + options_text(self)


@dataclass(frozen=True)
class UpstreamPass:
    """A pass of MLIR's or torch-mlir's own, nested in the ops that `anchors` names."""

    pass_name: str
    options: str = ""
    anchors: tuple[str, ...] = ()

    def name(self) -> str:
        return self.pass_name

    def path(self) -> tuple[str, ...]:
        return self.anchors

    def misfit(self, module: ir.Operation) -> str | None:
        return None  # MLIR's passes report what they do not take

    def __str__(self) -> str:
        return self.pass_name + ("{" + self.options + "}" if self.options else "")

    def run(self, module: ir.Operation) -> None:
        """Run the pass on `module`; what it leaves is verified by the runner.

        Raises:
            MetadefError: an anchor names no op (MLIR would match nothing and say nothing).
        """
        for op in self.anchors:
            if op != "any" and not _is_op(module.context, op):
                raise MetadefError(f"pass '{self}': no op '{op}' to nest in")
        manager = self.manager()
        manager.enable_verifier(False)
        manager.run(module)

    def manager(self) -> ir.passmanager.PassManager:
        """Return MLIR's pass manager that holds the pass alone.

        Raises:
            MetadefError: MLIR knows no such pass, or it does not take these options or this place.
        """
        text = str(self)
        for op in reversed(("builtin.module", *self.anchors)):
            text = f"{op}({text})"
        try:
            return ir.passmanager.PassManager.parse(text)
        except ValueError as error:
            raise MetadefError(self._explain(str(error))) from None

    def _explain(self, message: str) -> str:
        if "does not refer to a registered pass" in message:
            return f"unknown pass '{self.pass_name}'{near_passes(self.pass_name)}"
        first = message.strip().splitlines()[0].removeprefix("<Pass-Options-Parser>: ")
        return f"pass '{self}': {first}"


#: MLIR does not tell the names of its passes; these are the ones that people reach for
_FAMILIAR = (
    *("canonicalize", "cse", "inline", "symbol-dce", "loop-invariant-code-motion", "sccp"),
    *("linalg-generalize-named-ops", "linalg-fuse-elementwise-ops", "one-shot-bufferize"),
    *("convert-linalg-to-loops", "convert-scf-to-cf", "convert-vector-to-llvm", "lower-affine"),
    *("convert-func-to-llvm", "convert-arith-to-llvm", "finalize-memref-to-llvm"),
    *("convert-torch-to-linalg", "reconcile-unrealized-casts", "snapshot-op-locations"),
)

_user_passes: dict[str, type[Pass]] = {}


def add_pass(cls: type[Pass]) -> None:
    """Make a user's pass known under its name.

    Raises:
        MetadefError: a built-in pass has the name.
    """
    if cls.name() in _built_in_names():
        raise MetadefError(f"pass '{cls.name()}' is built in; give class {cls.__name__} a new name")
    _user_passes[cls.name()] = cls


def pass_names() -> list[str]:
    """Return the names of all passes written in Python, built-in and loaded, sorted."""
    return sorted({*_built_in_names(), *_user_passes})


def near_passes(name: str, prefix: str = "", others: Sequence[str] = ()) -> str:
    """Return `; did you mean ...?` for the passes, `prefix` before their names, and `others`."""
    known = [*(prefix + n for n in (*pass_names(), *_FAMILIAR)), *others]
    return near_names(prefix + name, known)


def user_pass_names() -> list[str]:
    """Return the names of the passes that user files brought in, sorted."""
    return sorted(_user_passes)


def class_name_of(name: str) -> str:
    """Return `FusePointwise` for `fuse-pointwise`."""
    return "".join(part.capitalize() for part in name.split("-"))


def find_pass(name: str) -> type[Pass]:
    """Return the class of the pass called `name`.

    Raises:
        MetadefError: no such pass; the near names are listed.
    """
    if name in _user_passes:
        return _user_passes[name]
    if name not in _built_in_names():
        raise MetadefError(f"unknown pass '{name}'{near_passes(name)}")
    module = importlib.import_module("metadef.passes." + name.replace("-", "_"))
    cls: type[Pass] = getattr(module, class_name_of(name))
    assert issubclass(cls, Pass)
    return cls


def parse_pass(text: str) -> Pass:
    """Return the pass that `fuse-pointwise{max-ops=8}` says.

    Raises:
        MetadefError: malformed text, unknown pass or option, or a value of the wrong type.
    """
    elements = read_pipeline(text)
    if len(elements) != 1 or elements[0].children is not None:
        raise MetadefError(f"pass text '{text}': expected one pass, such as 'name{{option=value}}'")
    return _python_pass(elements[0])


def parse_pipeline(text: str) -> list[Step]:
    """Return the passes of `builtin.module(a,func.func(b,c),d{max-ops=4})` in order.

    Raises:
        MetadefError: malformed text, unknown pass or option, or a pass in the wrong place.
    """
    elements = read_pipeline(text)
    if len(elements) != 1 or elements[0].name != "builtin.module" or elements[0].children is None:
        raise MetadefError(
            f"pipeline text '{text}': expected 'builtin.module(...)' around the passes"
        )
    return steps_of(elements[0].children)


def parse_passes(text: str) -> list[Step]:
    """Return the passes of a comma-separated list, the inside of `builtin.module(...)`."""
    return steps_of(read_pipeline(text))


def find_step(name: str, options: str = "") -> Step:
    """Return the pass called `name`; one of MLIR's that wants another op than the module nests.

    Raises:
        MetadefError: unknown pass or option, or a value of the wrong type.
    """
    if name in pass_names():
        return _python_pass(Element(name, options))
    upstream = UpstreamPass(name, options)
    try:
        _check(upstream)
    except MetadefError as error:
        wants = re.search(r"restricted to '([\w.]+)' on a PassManager", str(error))
        if wants is None:
            raise
        upstream = UpstreamPass(name, options, (wants[1],))
        _check(upstream)
    return upstream


def steps_of(elements: Sequence[Element], anchors: tuple[str, ...] = ()) -> list[Step]:
    """Return the passes that `elements`, nested in `anchors`, stand for, each checked."""
    steps: list[Step] = []
    known = set(pass_names())
    for element in elements:
        if element.children is not None:
            steps += steps_of(element.children, (*anchors, element.name))
        elif element.name not in known:
            upstream = UpstreamPass(element.name, element.options, anchors)
            _check(upstream)
            steps.append(upstream)
        elif anchors:
            raise MetadefError(
                f"pass '{element.name}' takes the builtin.module and cannot nest in '{anchors[-1]}'"
            )
        else:
            steps.append(_python_pass(element))
    return steps


def run_passes(
    module: ir.Module,
    passes: Sequence[Step],
    *,
    printing: Printing | None = None,
    ir_dir: str | Path | None = None,
    verify: bool = True,
    timing: Timing | None = None,
    on_stage: Callable[[Step, ir.Operation], None] | None = None,
) -> None:
    """Run passes on a module one after another; `ir_dir` gets the IR after each, in numbered files.

    Raises:
        MetadefError: what a pass raised about the user's input, with a note that names the pass.
        PipelineError: any other failure; its text says how to reproduce it.
    """
    shown = printing or Printing()
    if ir_dir is not None:
        shown = replace(shown, ir_dir=Path(ir_dir))
    PassRunner(printing=shown, verify=verify, timing=timing, on_stage=on_stage).run(module, passes)


def _python_pass(element: Element) -> Pass:
    cls = find_pass(element.name)
    return cls(**parse_options(cls, element.name, element.options))


@functools.cache
def _check(upstream: UpstreamPass) -> None:
    """Raise if MLIR does not take the pass; the answer is kept, as a context takes 5 ms."""
    with ir.Context():
        upstream.manager()


def _is_op(context: ir.Context, name: str) -> bool:
    try:
        context.dialects[name.partition(".")[0]]  # loads the dialect
    except IndexError:
        return False
    return context.is_registered_operation(name)


def _built_in_names() -> list[str]:
    folder = importlib.resources.files("metadef.passes")
    return [
        f.name[:-3].replace("_", "-")
        for f in folder.iterdir()
        if f.name.endswith(".py") and not f.name.startswith("_")
    ]
