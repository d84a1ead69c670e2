"""Who Metadef is measured against: what makes a callable of a model, and what it needs for that."""

from __future__ import annotations

import importlib.util
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.utils import _pytree as pytree

from metadef.cli import foreign_peers
from metadef.cli.models import Model
from metadef.cli.usage import UsageError
from metadef.diagnostics import MetadefError, near_names

#: from the arguments of a call to that call, with nothing left to do but to compute
Bind = Callable[[tuple[Any, ...], Mapping[str, Any]], Callable[[], Any]]


@dataclass(frozen=True)
class Peer:
    """Another way to run a model, with so many threads; `packages`: module -> package to install.

    `build(model, threads)` returns what binds the arguments of a call.
    """

    build: Callable[[Model, int], Bind]
    packages: Mapping[str, str]
    about: str


def bind_to(function: Callable[..., Any]) -> Bind:
    """Return what binds the arguments of a call of `function`."""
    return lambda args, kwargs: partial(function, *args, **kwargs)


def _eager(model: Model, threads: int) -> Bind:
    torch.set_num_threads(threads)
    return bind_to(model.eager)


def _inductor(model: Model, threads: int, mode: str | None = None, freezing: bool = False) -> Bind:
    """Compile at the first call; `freezing` is set for the whole process."""
    import torch._inductor.config

    torch.set_num_threads(threads)
    torch._dynamo.reset()
    torch._inductor.config.freezing = freezing
    dynamic = True if model.dynamic_shapes else None
    return bind_to(torch.compile(model.eager, mode=mode, dynamic=dynamic))


#: what exports a model to ONNX
_ONNX = {"onnx": "onnx", "onnxscript": "onnxscript"}

PEERS: Mapping[str, Peer] = {
    "eager": Peer(_eager, {}, "torch, op by op"),
    "inductor": Peer(_inductor, {}, "torch.compile; needs a C++ compiler"),
    "inductor-max": Peer(
        partial(_inductor, mode="max-autotune", freezing=True),
        {},
        "its max-autotune, frozen weights",
    ),
    "onnxruntime": Peer(
        foreign_peers.onnxruntime, {"onnxruntime": "onnxruntime", **_ONNX}, "by way of torch.onnx"
    ),
    "openvino": Peer(foreign_peers.openvino, {"openvino": "openvino"}, "in float32"),
    "iree": Peer(
        foreign_peers.iree,
        {"iree.compiler": "iree-base-compiler", "iree.runtime": "iree-base-runtime"},
        "for this machine's CPU, by way of torch-mlir",
    ),
}


def peers_named(text: str) -> list[str]:
    """Return the peers that `eager,inductor` names.

    Raises:
        UsageError: there is no such peer.
        MetadefError: a package that one of them needs is not installed.
    """
    names = list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    for name in names:
        if name not in PEERS:
            near = near_names(name, PEERS) or f"; known are {', '.join(PEERS)}"
            raise UsageError(f"--against: unknown peer '{name}'{near}")
        require(name)
    return names


def require(name: str) -> None:
    """Check that the packages are installed that a peer needs.

    Raises:
        MetadefError: one is missing; says what to install.
    """
    missing = [p for module, p in PEERS[name].packages.items() if not _is_installed(module)]
    if missing:
        raise MetadefError(
            f"peer '{name}' needs what is not installed: {', '.join(missing)}; "
            f"pip install {' '.join(missing)}, or 'metadef[bench]' for all peers"
        )


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the parent of `iree.compiler` is missing
        return False


def build_peer(name: str, model: Model, threads: int) -> Bind:
    """Return the model as the peer compiles it.

    Raises:
        MetadefError: the peer is not installed, or refuses the model.
    """
    require(name)
    try:
        return PEERS[name].build(model, threads)
    except Exception as error:
        said = (str(error).strip().splitlines() or ["no message"])[0]
        raise MetadefError(f"{name} fails on the model: {type(error).__name__}: {said}") from error


def tensors(result: Any) -> list[torch.Tensor]:
    """Return the tensors of a result in order, whatever a peer's own arrays are."""
    return list(itertools.chain.from_iterable(map(_tensor, pytree.tree_leaves(result))))


def _tensor(leaf: Any) -> Sequence[torch.Tensor]:
    if isinstance(leaf, torch.Tensor):
        return [leaf.detach()]
    if hasattr(leaf, "to_host"):  # an array on IREE's device
        leaf = leaf.to_host()
    return [torch.from_numpy(leaf.copy())] if hasattr(leaf, "__array__") else []
