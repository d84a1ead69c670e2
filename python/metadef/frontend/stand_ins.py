"""Tensors without data for a model whose ops' results are known, with as little as that takes.

torch.export's own fake tensors bring in sympy and Dynamo, 90 MiB. A model that notices the
difference does other ops than its trace says, and is exported.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import BaseTorchFunctionMode

_CPU = torch.device("cpu")


class StandIn(torch.Tensor):
    """A tensor on the CPU, for all that code can see, that has no data."""

    # as in torch's own FakeTensor; its stubs are stricter than what it does
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls, shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> StandIn:
        meta = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
        made: StandIn = torch.Tensor._make_subclass(
            cls, meta, False, dispatch_device=True, device_for_backend_keys=_CPU
        )
        return made

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        raise RuntimeError(f"{func}: nobody works out what this op gives")

    @property
    def device(self) -> torch.device:  # type: ignore[override]
        return _CPU


class StandIns:
    """The world of stand-ins: who runs a model there gives the result of each op."""

    def tensor(self, shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> StandIn:
        """Return a tensor without data."""
        return StandIn(shape, stride, dtype)

    @contextmanager
    def surroundings(self) -> Iterator[None]:
        """Change what torch.export changes around a model, as far as one sees without symbols."""
        compiler: Any = torch.compiler
        backends: list[Any] = [torch.backends.mkldnn, torch.backends.nnpack, torch.backends.cudnn]
        flags = compiler._is_compiling_flag, compiler._is_exporting_flag
        before = [backend.set_flags(False) for backend in backends]
        functions = builtins.max, builtins.min, math.pow
        try:
            compiler._is_compiling_flag = compiler._is_exporting_flag = True
            builtins.max = _of_two(builtins.max, torch.maximum, lambda x, n: torch.clamp(x, min=n))
            builtins.min = _of_two(builtins.min, torch.minimum, lambda x, n: torch.clamp(x, max=n))
            math.pow = operator.pow
            with BaseTorchFunctionMode():  # torch.nn takes its fast paths only outside such modes
                yield
        finally:
            builtins.max, builtins.min, math.pow = functions
            compiler._is_compiling_flag, compiler._is_exporting_flag = flags
            for backend, old in zip(backends, before, strict=True):
                backend.set_flags(*old)


def _of_two(builtin: Any, of_tensors: Any, clamp: Any) -> Callable[..., Any]:
    """Return `builtin`, max or min, which with a tensor among two arguments is an op."""

    def chosen(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and not kwargs:
            tensors = [a for a in args if isinstance(a, torch.Tensor)]
            limits = [a for a in args if isinstance(a, int | float)]
            if len(tensors) == 2:
                return of_tensors(*args)
            if tensors and limits:
                return clamp(tensors[0], limits[0])
        return builtin(*args, **kwargs)

    return chosen
