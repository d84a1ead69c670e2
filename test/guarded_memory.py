"""Runs programs with each of their buffers beside memory that nobody may touch.

    python test/guarded_memory.py start    # pages before each buffer; or: end

A kernel that reads or writes beside a buffer mostly finds the arena there, and nobody notices.
Here it ends the process: the last line of the output names the model.
"""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

import metadef
from metadef.runtime import program, tables
from metadef.runtime.back_graph import Arena, Weight

_GUARD = 1 << 20
_PAGE = mmap.PAGESIZE
_NO_ACCESS = 0
_libc = ctypes.CDLL(None)
_libc.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)


def block(size: int, side: str) -> torch.Tensor:
    """Return bytes that start right behind, or end right before, pages without access."""
    body = max(1, -(-size // _PAGE)) * _PAGE
    whole = torch.frombuffer(mmap.mmap(-1, body + 2 * _GUARD), dtype=torch.uint8)
    whole.fill_(0xFF)  # NaN as a float
    start = whole.data_ptr() + _GUARD
    for guard in (whole.data_ptr(), start + body):
        if _libc.mprotect(guard, _GUARD, _NO_ACCESS):
            raise OSError("mprotect failed")
    at = _GUARD if side == "start" else _GUARD + body - size
    return whole[at : at + size]


class Guard:
    """Gives programs guarded memory: arena, weights and outputs; `inputs` makes it for inputs."""

    def __init__(self, side: str) -> None:
        self._side = side
        self._kept: list[torch.Tensor] = []
        make = tables.Layout.table
        begin = tables.Layout.__init__

        def init(
            layout: Any, graph: Any, kernels: Any, addresses: Any, weights: Any, n: int
        ) -> None:
            layout.own_weights = weights
            begin(layout, graph, kernels, addresses, weights, n)

        def table(layout: Any, values: Mapping[str, int], *memory: int) -> tables.Table:
            made = make(layout, values, *memory)
            self._place(layout, made, values)
            return made

        tables.Layout.__init__ = init  # type: ignore[method-assign]
        tables.Layout.table = table  # type: ignore[method-assign]
        program.OutputPool = lambda _: self  # type: ignore[assignment, misc]
        program.BlockMemory = lambda _: self  # type: ignore[assignment, misc]

    def take(self, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
        """Return a tensor of any contents."""
        size = torch.Size(shape).numel() * dtype.itemsize
        self._kept.append(block(size, self._side))
        return self._kept[-1].view(dtype).view(shape)

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a tensor with the same contents."""
        return self.take(tuple(tensor.shape), tensor.dtype).copy_(tensor)

    def _place(self, layout: Any, table: tables.Table, values: Mapping[str, int]) -> None:
        places: dict[Any, int] = {}
        buffers = [b for step in layout.graph.steps for b in (*step.reads, *step.writes)]
        for at, buffer in enumerate(buffers, layout._pointers_at):
            if isinstance(buffer, Arena):
                if buffer.number not in places:
                    memory = self.take((buffer.size.evaluate(values),), torch.uint8)
                    places[buffer.number] = memory.data_ptr()
                table.words[at] = places[buffer.number]
            elif isinstance(buffer, Weight):
                if buffer.name not in places:
                    places[buffer.name] = self.copy(layout.own_weights[buffer.name]).data_ptr()
                table.words[at] = places[buffer.name]


def models() -> dict[str, tuple[nn.Module, tuple[torch.Tensor, ...]]]:
    """Return what reads near the edges of its buffers: windows, tails, rows that a box copies."""

    def conv(inside: int, outside: int, kernel: int, **options: Any) -> nn.Module:
        return nn.Sequential(nn.Conv2d(inside, outside, kernel, **options), nn.ReLU())

    def behind(*layers: nn.Module) -> nn.Module:
        return nn.Sequential(nn.Conv2d(8, 64, 1), nn.ReLU(), *layers)

    image = (torch.randn(1, 8, 14, 14),)
    return {
        "strided window in chunks": (
            nn.Sequential(conv(8, 512, 1), conv(512, 64, 3, stride=2, padding=1)),
            image,
        ),
        "dilated window in chunks": (
            nn.Sequential(conv(8, 512, 1), conv(512, 32, 3, stride=2, padding=2, dilation=2)),
            image,
        ),
        "spectra": (behind(conv(64, 40, 7, padding=3), conv(40, 64, 5)), image),
        "Winograd": (behind(conv(64, 64, 3, padding=1), conv(64, 40, 3, padding=1)), image),
        "depthwise": (behind(conv(64, 64, 3, padding=1, groups=64)), image),
        "depthwise, strided, odd": (
            conv(7, 7, 5, padding=2, stride=2, groups=7),
            (torch.randn(2, 7, 23, 19),),
        ),
        "depthwise, rows of many widths": (
            nn.Sequential(
                conv(5, 5, 7, padding=2, stride=2, groups=5),
                conv(5, 5, 3, stride=3, dilation=2, groups=5),
                conv(5, 5, 3, padding=1, groups=5),
            ),
            (torch.randn(1, 5, 75, 103),),
        ),
        "groups": (behind(conv(64, 48, 3, padding=1, stride=2, groups=4)), image),
        "first layer": (conv(3, 24, 7, padding=3, stride=2), (torch.randn(1, 3, 31, 29),)),
        "pools": (behind(nn.MaxPool2d(3, 2, 1), nn.AvgPool2d(3, 1, 1)), image),
        "products": (
            nn.Sequential(nn.Linear(37, 131), nn.GELU(), nn.Linear(131, 3000), nn.Linear(3000, 5)),
            (torch.randn(13, 37),),
        ),
        "long product": (nn.Linear(2100, 70), (torch.randn(150, 2100),)),
        "one row": (nn.Linear(1030, 77), (torch.randn(1, 1030),)),
        "norm and softmax": (
            nn.Sequential(nn.LayerNorm(37), nn.Softmax(-1)),
            (torch.randn(5, 37),),
        ),
        "attention": (
            nn.TransformerEncoderLayer(24, 3, 40, batch_first=True),
            (torch.randn(2, 17, 24),),
        ),
    }


def main(side: str) -> None:
    """Run each model and compare it with eager."""
    torch.manual_seed(0)
    guard = Guard(side)
    for name, (model, args) in models().items():
        print(name, flush=True)
        model.eval()
        for threads in (1, 2):
            compiled = metadef.compile(model, args, threads=threads, fallback="error")
            result = compiled(*map(guard.copy, args))
            torch.testing.assert_close(result, model(*args).detach(), rtol=1e-3, atol=1e-4)


if __name__ == "__main__":
    main(sys.argv[1])
