"""A compiled kernel: object code and what the runtime must know to call it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from metadef.runtime.cache import Cache
from metadef.symbolic import Dim

#: the name of the function in a kernel's text
KERNEL = "kernel"


@dataclass(frozen=True)
class CompiledKernel:
    """Object code of one kernel with the ABI `void symbol(args, syms, scratch, tid, nthreads,
    tickets)`.

    `symbols` orders syms. A call needs `scratch` bytes, and for each thread `thread_scratch` bytes
    on top and `tickets` counters that are 0. Thread 0 alone runs a `serial` kernel. `name` is the
    kernel's name in its module, `key` what it is cached under.
    """

    name: str
    symbol: str
    code: bytes
    symbols: tuple[str, ...] = ()
    scratch: Dim = Dim(())
    thread_scratch: int = 0
    tickets: int = 0
    serial: bool = False
    key: str = ""

    def to_bytes(self) -> bytes:
        """Return all but name and key as bytes: a line of JSON, then the object code."""
        header = {
            "symbol": self.symbol,
            "symbols": list(self.symbols),
            "scratch": str(self.scratch),
            "thread_scratch": self.thread_scratch,
            "tickets": self.tickets,
            "serial": self.serial,
        }
        return json.dumps(header).encode() + b"\n" + self.code

    @staticmethod
    def from_bytes(name: str, content: bytes) -> CompiledKernel:
        """Return the kernel that `to_bytes` wrote, as the one called `name`."""
        line, _, code = content.partition(b"\n")
        header = json.loads(line)
        return CompiledKernel(
            name=name,
            symbol=header["symbol"],
            code=code,
            symbols=tuple(header["symbols"]),
            scratch=Dim.of(header["scratch"]),
            thread_scratch=header["thread_scratch"],
            tickets=header["tickets"],
            serial=header["serial"],
        )


def kept_kernels(keys: Mapping[str, str], cache: Cache) -> dict[str, CompiledKernel] | None:
    """Return the kernels that `compile_kernels` kept, by their names' keys; None if one is gone."""
    found = {key: cache.get(key) for key in dict.fromkeys(keys.values())}
    kernels = {}
    for name, key in keys.items():
        content = found[key]
        if content is None:
            return None
        kernels[name] = replace(CompiledKernel.from_bytes(name, content), key=key)
    return kernels
