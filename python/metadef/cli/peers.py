"""Who Metadef is measured against: each peer makes a callable of a model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from metadef.cli.models import Model
from metadef.diagnostics import MetadefError

Program = Callable[..., Any]


def _eager(model: Program) -> Program:
    return model


def _inductor(model: Program) -> Program:
    torch._dynamo.reset()
    compiled: Program = torch.compile(model)
    return compiled


#: name -> from a model to what is called instead
PEERS: Mapping[str, Callable[[Program], Program]] = {"eager": _eager, "inductor": _inductor}


def build_peer(name: str, model: Model) -> Program:
    """Return the model as the peer compiles it, after its first call.

    Raises:
        MetadefError: the peer refuses the model or fails on it.
    """
    program = PEERS[name](model.eager)
    try:
        program(*model.args, **model.kwargs)
    except Exception as error:
        said = (str(error).strip().splitlines() or ["no message"])[0]
        raise MetadefError(f"{name} fails on the model: {type(error).__name__}: {said}") from error
    return program
