"""Memory of large outputs comes back when nobody has it any more, and never before."""

import torch

import metadef
from metadef.runtime.output_pool import OutputPool

SHAPE = (512, 512)


def _place(tensor: torch.Tensor) -> int:
    return tensor.data_ptr()


def test_memory_is_taken_again_when_the_tensor_is_gone() -> None:
    pool = OutputPool(8)
    first = pool.take(SHAPE, torch.float32)
    place = _place(first)
    assert first.is_contiguous() and first.shape == SHAPE and not first._is_view()
    assert _place(pool.take(SHAPE, torch.float32)) != place
    del first
    assert _place(pool.take(SHAPE, torch.float32)) == place


def test_many_outputs_of_a_call_find_their_memory_again() -> None:
    pool = OutputPool(2 * 12)
    first = [pool.take(SHAPE, torch.float32) for _ in range(12)]
    second = [pool.take(SHAPE, torch.float32) for _ in range(12)]
    places = {_place(t) for t in first}
    del first
    assert {_place(pool.take(SHAPE, torch.float32)) for _ in second} <= places


def test_a_storage_that_was_resized_is_not_taken_again() -> None:
    pool = OutputPool(8)
    tensor = pool.take(SHAPE, torch.float32)
    tensor.untyped_storage().resize_(0)
    del tensor
    assert pool.take(SHAPE, torch.float32).untyped_storage().nbytes() == 4 * 512 * 512


def test_outputs_of_inference_mode_do_not_leak_into_others() -> None:
    pool = OutputPool(8)
    for shape in (SHAPE, (2, 2)):
        with torch.inference_mode():
            assert pool.take(shape, torch.float32).is_inference()
        tensor = pool.take(shape, torch.float32)
        assert not tensor.is_inference()
        tensor.requires_grad_().sum().backward()


def test_views_arrays_and_storages_keep_their_memory() -> None:
    pool = OutputPool(8)
    for keep in (lambda t: t[3:5], lambda t: t.numpy(), lambda t: t.untyped_storage()):
        tensor = pool.take(SHAPE, torch.float32)
        place = _place(tensor)
        kept = keep(tensor)
        del tensor
        other = pool.take(SHAPE, torch.float32)
        assert _place(other) != place
        del kept, other


def test_other_sizes_and_dtypes_have_their_own_memory() -> None:
    pool = OutputPool(8)
    for dtype in (torch.float32, torch.float64, torch.bool):
        tensor = pool.take((1024, 1024), dtype)
        assert tensor.dtype == dtype and tensor.untyped_storage().nbytes() == tensor.nbytes


def test_results_outlive_later_calls() -> None:
    x = torch.randn(SHAPE)
    compiled = metadef.compile(lambda x: x * 2, (x,))
    results = [compiled(x + i) for i in range(12)]
    for i, result in enumerate(results):
        torch.testing.assert_close(result, (x + i) * 2, rtol=0, atol=0)
