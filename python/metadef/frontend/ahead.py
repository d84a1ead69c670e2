"""Load the program that a model probably becomes, while torch.export captures the model.

The cache keeps, under what a model looks like from outside, the key of the graph that it became
last time. That is a guess: the program is taken only when the captured graph has that key and
the very weights that the program was given.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

import torch
from torch.utils import _pytree as pytree

from metadef.codegen.compile import compiler_version
from metadef.device.spec import DeviceSpec
from metadef.diagnostics import MetadefError
from metadef.runtime.cache import Cache

T = TypeVar("T")
Weights = Mapping[str, torch.Tensor]
_log = logging.getLogger(__name__)


class Ahead(Generic[T]):
    """What `load(graph key, weights)` gives, being made in a thread of its own."""

    def __init__(
        self, key: str, weights: Weights, load: Callable[[str, Weights], T | None]
    ) -> None:
        self.key = key
        self._weights = weights
        executor = ThreadPoolExecutor(1, thread_name_prefix="metadef-ahead")
        self._found: Future[T | None] = executor.submit(load, key, weights)
        executor.shutdown(wait=False)

    def take(self, key: str | None, weights: Weights) -> T | None:
        """Return what was made, if it is right for the graph `key` with these weights."""
        if key != self.key:
            return None
        try:
            found = self._found.result()
        except (MetadefError, RuntimeError) as error:
            _log.debug("loading ahead failed: %s", error)  # the compilation meets it again
            return None
        return found if _same_tensors(weights, self._weights) else None


def start(
    cache: Cache, guess: str | None, module: Any, load: Callable[[str, Weights], T | None]
) -> Ahead[T] | None:
    """Start to load the graph that is kept under `guess`; None where none is."""
    content = cache.get(guess) if guess is not None else None
    if content is None:
        return None
    return Ahead(content.decode(), dict(_state(module)), load)


def guess_key(
    module: Any, args: Any, kwargs: Any, dynamic_shapes: Any, device: DeviceSpec
) -> str | None:
    """Return a key of a module's and its arguments' looks; None for what exports in no time."""
    if not isinstance(module, torch.nn.Module):
        return None
    lines = [f"{type(module).__module__}.{type(module).__qualname__}", repr(dynamic_shapes)]
    lines += [f"{name} {_looks(tensor)}" for name, tensor in _state(module)]
    lines += [_looks(leaf) for leaf in pytree.tree_leaves((args, kwargs))]
    content = "\n".join(["ahead", compiler_version(), torch.__version__, repr(device), *lines])
    return hashlib.sha256(content.encode()).hexdigest()


def _state(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from module.named_parameters(remove_duplicate=False)
    yield from module.named_buffers(remove_duplicate=False)


def _looks(leaf: Any) -> str:
    if isinstance(leaf, torch.Tensor):
        return f"{leaf.dtype}{list(leaf.shape)}"
    return repr(leaf) if isinstance(leaf, bool | int | float | str) else type(leaf).__name__


def _same_tensors(some: Weights, others: Weights) -> bool:
    """Tell whether each tensor of `some` is the one of that name in `others`."""
    return all(
        name in others
        and tensor.data_ptr() == others[name].data_ptr()
        and tensor.stride() == others[name].stride()
        and (tensor.shape, tensor.dtype) == (others[name].shape, others[name].dtype)
        for name, tensor in some.items()
    )


def keep_guess(cache: Cache, guess: str | None, ahead: Ahead[T] | None, key: str | None) -> None:
    """Keep the graph's key for the next time, where the guess was not that."""
    if guess is not None and key is not None and (ahead is None or ahead.key != key):
        cache.put(guess, key.encode())
