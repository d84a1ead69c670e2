"""What a model does, op by op, and whether it still does that, found without torch.export.

`record` (in `op_recording`) runs a model on tensors without data and notes every op with its
arguments. `replay` runs it again, except that nobody works out an op's results: they are tensors of
the noted shapes, as long as every op is the noted one. What torch.export captures follows from
these ops, so a model that replays is the model that was exported. It takes a tenth of the time.
"""

from __future__ import annotations

import hashlib
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch.nn.utils.stateless import _reparametrize_module
from torch.utils import _pytree as pytree
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

from . import stand_ins
from .argument_text import UnknownArgumentError, argument_text, is_plain
from .exporting import exporting
from .node_names import TORCH_FOLDER

_CPU = torch.device("cpu")
#: where code lies that a model's ops go through
_NOT_THE_MODELS = (TORCH_FOLDER, stand_ins.__file__)
_DEVICE_OF = torch.ops.prim.device.default


@dataclass(frozen=True)
class OpTrace:
    """A run of a model: what went in, each op with its results, and what came out.

    A result is `{"is": name}` for a tensor that was there before, `{"dtype", "shape", "stride"}`
    for a new one, `{"value": x}` for a number, or a list of results.
    """

    inputs: tuple[str, ...]
    ops: tuple[tuple[str, Any], ...]
    returns: str


class UntraceableError(Exception):
    """The model does what a trace cannot say, or not what the trace says."""


class World(Protocol):
    """Where a model runs on tensors without data."""

    def tensor(
        self, shape: Sequence[int], stride: Sequence[int], dtype: torch.dtype
    ) -> torch.Tensor:
        """Return a tensor without data."""

    def surroundings(self) -> AbstractContextManager[None]:
        """Return what the model runs in: as nearly as torch.export's as it matters."""


def replay(
    trace: OpTrace, module: torch.nn.Module, args: Any, kwargs: Any
) -> pytree.TreeSpec | None:
    """Return the pytree of a call's result if the call does what the trace says, else None."""
    try:
        run = Run(module, args, kwargs, stand_ins.StandIns())
        if run.inputs != trace.inputs:
            return None
        player = _Player(run, trace.ops)
        returns, out_spec = run.through(player.result)
    except Exception:  # as above
        return None
    return out_spec if returns == trace.returns and player.is_through else None


class Run:
    """A call of a module in a world of tensors without data."""

    def __init__(self, module: torch.nn.Module, args: Any, kwargs: Any, world: World) -> None:
        self._module = module
        self.world = world
        self._names: dict[int, str] = {}
        self._tensors: dict[str, torch.Tensor] = {}  # as long as one is here, nobody has its id
        lines: list[str] = []
        self._state: dict[str, torch.Tensor] = {}
        twins: dict[int, torch.Tensor] = {}
        for name, tensor in module_state(module):
            if id(tensor) not in twins:
                twins[id(tensor)] = self._stand_in(name, tensor)
            self._state[name] = twins[id(tensor)]
            lines.append(f"{name} {self._names[id(twins[id(tensor)])]} {_looks(tensor)}")
        leaves, spec = pytree.tree_flatten((args, kwargs))
        for index, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor):
                leaves[index] = self._stand_in(f"argument {index}", leaf)
            lines.append(_looks(leaf))
        self._args, self._kwargs = pytree.tree_unflatten(leaves, spec)
        self.inputs = tuple(lines)

    def through(
        self, result: Callable[[str, Callable[[], Any]], Any]
    ) -> tuple[str, pytree.TreeSpec]:
        """Run the module with ops that give `result`; return what it returns as text and pytree."""
        watch = _Watch(self, result)
        with ExitStack() as stack:
            stack.enter_context(exporting)
            stack.enter_context(torch.no_grad())
            stack.enter_context(
                _reparametrize_module(
                    self._module, self._state, tie_weights=True, strict=True, stack_weights=True
                )
            )
            stack.enter_context(_unchanged(self._module, self._state.values()))
            stack.enter_context(self.world.surroundings())
            stack.enter_context(watch)
            returned = self._module(*self._args, **self._kwargs)
        if watch.failed:  # the model caught what the mode raised
            raise UntraceableError
        leaves, spec = pytree.tree_flatten(returned)
        return self.text(leaves), spec

    def _stand_in(self, name: str, tensor: torch.Tensor) -> torch.Tensor:
        if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or (
            tensor.device != _CPU or tensor.layout != torch.strided or tensor.is_nested
        ):
            raise UnknownArgumentError(name)
        fake = self.world.tensor(tensor.shape, tensor.stride(), tensor.dtype)
        fake.requires_grad = tensor.requires_grad
        if isinstance(tensor, torch.nn.Parameter):
            fake._is_param = True
        self._name(fake, name)
        return fake

    def _name(self, tensor: torch.Tensor, name: str) -> None:
        self._names[id(tensor)] = name
        self._tensors[name] = tensor

    def text(self, argument: Any) -> str:
        """Return an argument as text, tensors by their names and constants by their data."""
        return argument_text(argument, self._tensor_text)

    def _tensor_text(self, leaf: Any) -> str | None:
        if not isinstance(leaf, torch.Tensor):
            return None
        name = self._names.get(id(leaf))
        if name is not None:
            return f"%{name}"
        if type(leaf) not in (torch.Tensor, torch.nn.Parameter):
            return None
        with no_dispatch():
            data = leaf.detach().contiguous().reshape(-1).view(torch.uint8).numpy()
        return f"{_looks(leaf)} {hashlib.sha256(data.data).hexdigest()}"

    def known(self, tensor: torch.Tensor) -> str | None:
        """Return the name of a tensor that was there before."""
        return self._names.get(id(tensor))

    def add(self, tensor: torch.Tensor) -> None:
        """Name the new result of an op."""
        self._name(tensor, str(len(self._tensors)))

    def named(self, name: str) -> torch.Tensor:
        """Return the tensor of a name."""
        return self._tensors[name]


class _Watch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Shows each op of a run, as text, to `result`, which returns what the op gives."""

    def __init__(self, run: Run, result: Callable[[str, Callable[[], Any]], Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._run = run
        self._result = result
        self.failed = False

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Not: that loads Dynamo, which has nothing to see here, to tell it so."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        if func is _DEVICE_OF:
            return _CPU
        kwargs = kwargs or {}
        try:
            if not isinstance(func, torch._ops.OpOverload):
                raise UntraceableError
            line = f"{func} {self._run.text(args)} {self._run.text(kwargs)}{_place()}"
            return self._result(line, lambda: func(*args, **kwargs))
        except Exception:
            self.failed = True
            raise


class _Player:
    """Gives the noted results, as long as each op is the noted one."""

    def __init__(self, run: Run, ops: Sequence[tuple[str, Any]]) -> None:
        self._run = run
        self._ops = ops
        self._done = 0

    @property
    def is_through(self) -> bool:
        """Whether every noted op was seen."""
        return self._done == len(self._ops)

    def result(self, line: str, compute: Callable[[], Any]) -> Any:
        if self.is_through or self._ops[self._done][0] != line:
            raise UntraceableError
        self._done += 1
        with no_dispatch():
            return self._made(self._ops[self._done - 1][1])

    def _made(self, described: Any) -> Any:
        if isinstance(described, list):
            return [self._made(r) for r in described]
        if "is" in described:
            return self._run.named(described["is"])
        if "value" in described:
            return described["value"]
        dtype = getattr(torch, described["dtype"].removeprefix("torch."))
        result = self._run.world.tensor(described["shape"], described["stride"], dtype)
        self._run.add(result)
        return result


def module_state(module: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    """Return the parameters and buffers of a module under all their names.

    Not while another thread traces: then tensors without data stand in for them.
    """
    with exporting:
        return [
            *module.named_parameters(remove_duplicate=False),
            *module.named_buffers(remove_duplicate=False),
        ]


def _looks(leaf: Any) -> str:
    if isinstance(leaf, torch.Tensor):
        grad = " grad" if leaf.requires_grad else ""
        return f"{leaf.dtype}{list(leaf.shape)}{list(leaf.stride())}{grad}"
    if is_plain(leaf):
        return repr(leaf)
    raise UnknownArgumentError(type(leaf).__name__)


def _place() -> str:
    """Return the innermost line of the model's own code, which its locations come from."""
    frame: types.FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code is not Run.through.__code__:
        file = frame.f_code.co_filename
        if not file.startswith(_NOT_THE_MODELS):
            return f" at {file}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


@contextmanager
def _unchanged(module: torch.nn.Module, own: Iterable[torch.Tensor]) -> Iterator[None]:
    """Put back what a run leaves in a module's attributes where it has tensors.

    A recurrent layer lists its `own` weights anew.

    Raises:
        UntraceableError: the run left another tensor.
    """
    before = _attributes(module)
    allowed = {id(tensor) for tensor in own}
    left = False
    try:
        yield
    finally:
        for owner, values in _attributes(module).values():
            _, old = before.get(id(owner), (owner, {}))
            for name, value in values.items():
                if name in old and old[name] is value:
                    continue
                tensors = [t for t in pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]
                left |= any(id(tensor) not in allowed for tensor in tensors)
                if tensors and name in old:
                    owner[name] = old[name]
                elif tensors:
                    del owner[name]
    if left:
        raise UntraceableError


def _attributes(module: torch.nn.Module) -> dict[int, tuple[dict[str, Any], dict[str, Any]]]:
    """Return each dict of attributes in a module, by its id, with a copy of it."""
    dicts = [
        d for m in module.modules() for d in (m.__dict__, m._parameters, m._buffers, m._modules)
    ]
    return {id(d): (d, dict(d)) for d in dicts}
