"""What @init makes lies in one block, apart and aligned."""

import pytest
import torch

from metadef.runtime.back_graph import Tensor
from metadef.runtime.block_memory import BlockMemory
from metadef.runtime.dependences import ALIGNMENT
from metadef.symbolic import Dim


@pytest.mark.parametrize("rows", [0, 3, 70_001])
def test_tensors_lie_apart_in_one_block(rows: int) -> None:
    tensors = [
        Tensor((Dim.of(rows), Dim.of(5)), torch.float32),
        Tensor((Dim.of(7),), torch.bool),
        Tensor((), torch.int64),
        Tensor((Dim.of(rows), Dim.of(2)), torch.float64),
    ]
    memory = BlockMemory(tensors)
    taken = [memory.take(tuple(d.value for d in t.dims), t.dtype) for t in tensors]
    for number, tensor in enumerate(taken):
        assert tensor.is_contiguous() and tensor.data_ptr() % ALIGNMENT == 0
        tensor.fill_(number)
    for number, (tensor, declared) in enumerate(zip(taken, tensors, strict=True)):
        assert tensor.shape == tuple(d.value for d in declared.dims)
        assert bool((tensor == tensor.new_tensor(number)).all())
    assert len({t.untyped_storage().data_ptr() for t in taken}) == 1
