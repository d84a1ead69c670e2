"""The tensors of a model by name: shared with the module, never copied, tied ones kept once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from metadef.diagnostics import MetadefError


class WeightStore(Mapping[str, torch.Tensor]):
    """Maps a weight's name to a dense row-major tensor that shares the module's storage.

    Two names of one storage, offset, shape, strides and dtype are one weight, under the name that
    was added first. A tensor that is not dense row-major cannot be shared: its copy is listed in
    `copied`.
    """

    def __init__(self) -> None:
        self._tensors: dict[str, torch.Tensor] = {}
        self._sources: dict[str, torch.Tensor] = {}
        self._names: dict[tuple[object, ...], str] = {}
        self.copied: set[str] = set()

    def add(self, name: str, tensor: torch.Tensor) -> str:
        """Add a tensor and return the name it is kept under.

        Raises:
            MetadefError: the tensor is not a dense tensor in the CPU's memory.
        """
        if tensor.layout != torch.strided or tensor.is_quantized:
            kind = "quantized" if tensor.is_quantized else str(tensor.layout)
            raise MetadefError(f"weight '{name}': expected a dense tensor, got {kind}")
        if tensor.device.type != "cpu":
            raise MetadefError(
                f"weight '{name}': expected a tensor on cpu, got {tensor.device}; "
                "move the module with .to('cpu')"
            )
        tensor = tensor.detach()
        key = _identity(tensor)
        if key in self._names:
            return self._names[key]
        name = self._fresh(name)
        self._names[key] = name
        self._sources[name] = tensor
        if not tensor.is_contiguous():
            self.copied.add(name)
        self._tensors[name] = tensor.contiguous()
        return name

    def source(self, name: str) -> torch.Tensor:
        """Return the module's own tensor, with its strides: what a mutation is written to."""
        return self._sources[name]

    @property
    def nbytes(self) -> int:
        """Bytes of all weights."""
        return sum(t.nbytes for t in self._tensors.values())

    def __getitem__(self, name: str) -> torch.Tensor:
        return self._tensors[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)

    def _fresh(self, name: str) -> str:
        candidate, i = name, 0
        while candidate in self._tensors:
            i += 1
            candidate = f"{name}.{i}"
        return candidate


def _identity(tensor: torch.Tensor) -> tuple[object, ...]:
    """Return what two tensors share when they are one: storage and layout (empty ones never do)."""
    place = tensor.data_ptr() if tensor.numel() else id(tensor)
    return (place, tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.is_conj())
