"""Notes what a model does, op by op, in the world of torch.export: see `op_trace`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch._export.non_strict_utils import _NonStrictTorchFunctionHandler, _override_builtin_ops
from torch._export.utils import _compiling_state_context
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.export._trace import _ignore_backend_decomps

from .op_trace import OpTrace, Run, UntraceableError

_CPU = torch.device("cpu")


def record(module: torch.nn.Module, args: Any, kwargs: Any) -> OpTrace | None:
    """Return the trace of a call, or None where a trace does not tell all of it."""
    try:
        run = Run(module, args, kwargs, _FakeWorld())
        recorder = _Recorder(run)
        returns, _ = run.through(recorder.result)
    except Exception:  # whatever the model raises on tensors without data
        return None
    return OpTrace(run.inputs, tuple(recorder.ops), returns)


class _Recorder:
    """Works out each op on tensors without data, and notes it with its results."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self.ops: list[tuple[str, Any]] = []

    def result(self, line: str, compute: Callable[[], Any]) -> Any:
        result = compute()
        self.ops.append((line, self._described(result)))
        return result

    def _described(self, result: Any) -> Any:
        if isinstance(result, list | tuple):
            return [self._described(r) for r in result]
        if isinstance(result, FakeTensor):
            name = self._run.known(result)
            if name is not None:
                return {"is": name}
            if result.fake_device != _CPU or result.layout != torch.strided:
                raise UntraceableError
            self._run.add(result)
            shape, stride = list(result.shape), list(result.stride())
            if not all(type(n) is int for n in (*shape, *stride)):
                raise UntraceableError
            return {"dtype": str(result.dtype), "shape": shape, "stride": stride}
        if result is None or type(result) in (bool, int, float):
            return {"value": result}
        raise UntraceableError


class _FakeWorld:
    """Works out each op's result on tensors without data."""

    def __init__(self) -> None:
        self._mode = FakeTensorMode(allow_non_fake_inputs=True)

    def tensor(self, shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> FakeTensor:
        """Return a tensor without data."""
        meta = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
        return FakeTensor(self._mode, meta, _CPU)

    @contextmanager
    def surroundings(self) -> Iterator[None]:
        """What torch.export puts around the model."""
        with (
            _ignore_backend_decomps(),
            _compiling_state_context(),
            _override_builtin_ops(),
            _NonStrictTorchFunctionHandler(),
            self._mode,
        ):
            yield
