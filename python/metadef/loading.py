"""Brings in a user's Python file: its passes, patterns, ops and dialects join the built-in ones."""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from metadef import ir
from metadef.diagnostics import MetadefError
from metadef.dialects import USER_DIALECTS
from metadef.pipeline import Pass, add_pass
from metadef.rewrite import Pattern, apply_patterns

T = TypeVar("T")


@dataclass(frozen=True)
class Loaded:
    """The names that a file brought in."""

    passes: tuple[str, ...]
    dialects: tuple[str, ...]


def load_file(path: str | Path) -> Loaded:
    """Import `path` and make what it defines known; loading a file again does nothing new.

    Subclasses of `Pass` become passes. A `Pattern` becomes a pass of its own name, in kebab-case,
    that applies it alone. Subclasses of `ir.ext.Dialect` are loaded into every context made from
    now on; ops added to the metadef dialect are too.

    Raises:
        MetadefError: the file is missing, does not import, or defines a name that is taken.
    """
    file = Path(path).resolve()
    module_name = f"metadef_user_{hashlib.sha256(str(file).encode()).hexdigest()[:12]}"
    seen = module_name in sys.modules
    module = sys.modules[module_name] if seen else _import(file, module_name)
    passes = _defined(module, Pass)
    patterns = [v for v in vars(module).values() if isinstance(v, Pattern)]
    passes += [_pattern_pass(p) for p in patterns]
    dialects = _defined(module, ir.ext.Dialect)
    if not seen:
        for cls in passes:
            add_pass(cls)
        for dialect in dialects:
            _add_dialect(dialect, file)
    return Loaded(
        tuple(sorted(cls.name() for cls in passes)),
        tuple(sorted(dialect.DIALECT_NAMESPACE for dialect in dialects)),
    )


def _import(file: Path, module_name: str) -> ModuleType:
    if not file.is_file():
        raise MetadefError(f"cannot load '{file}': no such file")
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise MetadefError(f"cannot load '{file}': expected a Python file, its name ending in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module_name]
        reason = f"{type(error).__name__}: {error}"
        raise MetadefError(f"cannot load '{file}'{_line_in(file, error)}: {reason}") from error
    return module


def _line_in(file: Path, error: Exception) -> str:
    """Return `, line 12` for the innermost frame of `file` in the error's traceback."""
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}"
    line, frame = "", error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_filename == str(file):
            line = f", line {frame.tb_lineno}"
        frame = frame.tb_next
    return line


def _defined(module: ModuleType, base: type[T]) -> list[type[T]]:
    """Return the subclasses of `base` that `module` itself defines, not those it imports."""
    return [
        v
        for v in vars(module).values()
        if isinstance(v, type) and issubclass(v, base) and v.__module__ == module.__name__
    ]


def _add_dialect(dialect: type[ir.ext.Dialect], file: Path) -> None:
    taken = {"metadef", "device", *(d.DIALECT_NAMESPACE for d in USER_DIALECTS)}
    name = dialect.DIALECT_NAMESPACE
    with ir.Context() as context:
        if name in taken or _is_available(context, name):
            raise MetadefError(f"cannot load '{file}': a dialect called '{name}' exists already")
    USER_DIALECTS.append(dialect)


def _is_available(context: ir.Context, name: str) -> bool:
    try:
        context.dialects[name]
    except IndexError:
        return False
    return True


def _pattern_pass(pattern: Pattern) -> type[Pass]:
    """Return a pass, named as the pattern is, that applies the pattern until it matches no more."""

    def run(self: Pass, module: ir.Operation) -> None:
        apply_patterns(module, [pattern])

    class_name = "".join(part.capitalize() for part in pattern.name.strip("_").split("_"))
    about = pattern.rewrite.__doc__ or f"Apply the pattern {pattern.name} on {pattern.root}."
    return type(class_name, (Pass,), {"run": run, "__doc__": about, "leaves": "the same module"})
