"""Load the program that a model probably becomes, while it turns out whether it does.

The program is taken only for the graph and the very weights that it was loaded for.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Generic, TypeVar

import torch

from metadef.diagnostics import MetadefError

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


def _same_tensors(some: Weights, others: Weights) -> bool:
    """Tell whether each tensor of `some` is the one of that name in `others`."""
    return all(
        name in others
        and tensor.data_ptr() == others[name].data_ptr()
        and tensor.stride() == others[name].stride()
        and (tensor.shape, tensor.dtype) == (others[name].shape, others[name].dtype)
        for name, tensor in some.items()
    )
