"""Metadef as a backend of the peers harness: `--backend metadef=bench/peers_backend.py:build`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import torch

import metadef


def build(model: torch.nn.Module, example_inputs: tuple[Any, ...]) -> Callable[..., Any]:
    """Compile with the harness's `CFG.threads`; with `CFG.dyn`, dim 0 of input 0 may vary."""
    config = getattr(sys.modules["__main__"], "CFG", None)
    dynamic_shapes = None
    if getattr(config, "dyn", False):
        batch = torch.export.Dim("batch", min=1, max=4096)
        dynamic_shapes = ({0: batch}, *[None] * (len(example_inputs) - 1))
    threads = getattr(config, "threads", None)
    return metadef.compile(model, example_inputs, dynamic_shapes=dynamic_shapes, threads=threads)
