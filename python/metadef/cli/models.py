"""MODEL of the command line: a `.pt2` file, or `package.module:factory`."""

from __future__ import annotations

import argparse
import importlib
import logging
import os
import re
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from metadef.cli.usage import UsageError
from metadef.diagnostics import MetadefError, near_names

if TYPE_CHECKING:
    import torch

_FACTORY = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class Model:
    """A model with the arguments of one call; `dynamic_shapes` as torch.export has them.

    `more_args` are the positional arguments of further calls, where a bench varies the sizes.
    """

    name: str
    module: torch.nn.Module | torch.export.ExportedProgram | Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    dynamic_shapes: Any = None
    more_args: tuple[tuple[Any, ...], ...] = ()

    @property
    def calls(self) -> list[tuple[Any, ...]]:
        """The positional arguments of each call."""
        return [self.args, *self.more_args]

    @property
    def eager(self) -> Callable[..., Any]:
        """The model as torch runs it.

        Raises:
            MetadefError: it is a file without example inputs to run it on.
        """
        import torch

        if not isinstance(self.module, torch.export.ExportedProgram):
            return self.module
        if self.module.example_inputs is None:
            raise MetadefError(
                f"'{self.name}' has no example inputs to run on; torch.export.export keeps them, "
                "unless they were removed before torch.export.save"
            )
        return self.module.module()


def add_model(parser: argparse.ArgumentParser) -> None:
    """Add the argument MODEL, which `load_model` understands."""
    parser.add_argument("model", metavar="MODEL", help=".pt2 file or package.module:factory")


def load_model(name: str) -> Model:
    """Load the model that the command line names; a factory starts from torch's seed 0.

    Raises:
        UsageError: the name is of neither form.
        MetadefError: the file cannot be read, or the factory fails or gives something else.
    """
    if name.endswith(".pt2"):
        return _load_file(name)
    if not _FACTORY.fullmatch(name):
        raise UsageError(f"MODEL: expected a .pt2 file or package.module:factory, got '{name}'")
    return _call_factory(name)


def _load_file(name: str) -> Model:
    import torch

    if not Path(name).is_file():
        raise MetadefError(f"cannot load '{name}': no such file")
    log = logging.getLogger("torch.export")
    try:
        log.disabled = True  # torch logs the traceback of what it then raises
        program = torch.export.load(name)
    except Exception as error:
        raise MetadefError(
            f"cannot load '{name}': expected a file written by torch.export.save; "
            f"torch says {type(error).__name__}: {_first_line(error)}"
        ) from error
    finally:
        log.disabled = False
    args, kwargs = program.example_inputs or ((), {})
    return Model(name, program, tuple(args), dict(kwargs))


def _call_factory(name: str) -> Model:
    import torch

    module_name, _, function_name = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except Exception as error:
        raise MetadefError(f"cannot import '{module_name}': {_said(error)}") from error
    factory = getattr(module, function_name, None)
    if not callable(factory):
        known = [key for key, value in vars(module).items() if callable(value)]
        raise MetadefError(
            f"'{module_name}' has no function '{function_name}'{near_names(function_name, known)}"
        )
    torch.manual_seed(0)
    try:
        made = factory()
    except Exception as error:
        raise MetadefError(f"'{name}' failed: {_said(error)}") from error
    return _model_of(name, made)


def _model_of(name: str, made: object) -> Model:
    if isinstance(made, Model):
        return replace(made, name=name)
    wanted = f"'{name}': expected (module, args) or (module, args, kwargs)"
    if not isinstance(made, tuple) or len(made) not in (2, 3):
        got = f"{len(made)} values" if isinstance(made, tuple) else f"a {type(made).__name__}"
        raise MetadefError(f"{wanted}, got {got}")
    module, args, kwargs = made if len(made) == 3 else (*made, {})
    if not callable(module):
        raise MetadefError(f"{wanted}, got a {type(module).__name__} as module")
    if not isinstance(args, tuple | list):
        raise MetadefError(f"{wanted} with args a tuple, got a {type(args).__name__}")
    if not isinstance(kwargs, dict):
        raise MetadefError(f"{wanted} with kwargs a dict, got a {type(kwargs).__name__}")
    return Model(name, module, tuple(args), kwargs)


def _said(error: Exception) -> str:
    """Return what an exception says, and the line of the user's code that raised it."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "importlib" not in f.filename]
    place = f"; from {frames[-1].filename}:{frames[-1].lineno}" if len(frames) > 1 else ""
    return f"{type(error).__name__}: {_first_line(error)}{place}"


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or ["no message"])[0]
