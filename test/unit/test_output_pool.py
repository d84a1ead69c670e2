"""Memory of large outputs comes back when nobody has it any more, and never before."""

import torch

import metadef
from metadef.runtime.output_pool import OutputPool

SHAPE = (512, 512)


def _place(tensor: torch.Tensor) -> int:
    return tensor.data_ptr()


def test_memory_is_taken_again_when_the_tensor_is_gone() -> None:
    pool = OutputPool()
    first = pool.take(SHAPE, torch.float32)
    place = _place(first)
    assert first.is_contiguous() and first.shape == SHAPE and not first._is_view()
    assert _place(pool.take(SHAPE, torch.float32)) != place
    del first
    assert _place(pool.take(SHAPE, torch.float32)) == place


def test_views_arrays_and_storages_keep_their_memory() -> None:
    pool = OutputPool()
    for keep in (lambda t: t[3:5], lambda t: t.numpy(), lambda t: t.untyped_storage()):
        tensor = pool.take(SHAPE, torch.float32)
        place = _place(tensor)
        kept = keep(tensor)
        del tensor
        other = pool.take(SHAPE, torch.float32)
        assert _place(other) != place
        del kept, other


def test_other_sizes_and_dtypes_have_their_own_memory() -> None:
    pool = OutputPool()
    for dtype in (torch.float32, torch.float64, torch.bool):
        tensor = pool.take((1024, 1024), dtype)
        assert tensor.dtype == dtype and tensor.untyped_storage().nbytes() == tensor.nbytes


def test_results_outlive_later_calls() -> None:
    x = torch.randn(SHAPE)
    compiled = metadef.compile(lambda x: x * 2, (x,))
    results = [compiled(x + i) for i in range(12)]
    for i, result in enumerate(results):
        torch.testing.assert_close(result, (x + i) * 2, rtol=0, atol=0)
