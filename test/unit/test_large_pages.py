"""Memory in large pages: as much as was asked for, aligned, apart from other memory."""

import pytest
import torch

from metadef.diagnostics import MetadefError
from metadef.runtime.large_pages import memory

_LARGE = 2 << 20


def test_too_much_says_how_much() -> None:
    with pytest.raises(MetadefError, match="1099511627776 MiB .* smaller arguments"):
        memory(1 << 60)


@pytest.mark.parametrize("size", [0, 1, _LARGE - 1, _LARGE, 3 * _LARGE + 5])
def test_memory_has_the_size_and_is_apart(size: int) -> None:
    one, other = memory(size), memory(size)
    assert one.shape == (size,) and one.dtype is torch.uint8
    one.fill_(1)
    other.fill_(2)
    assert bool((one == 1).all()) and bool((other == 2).all())
    if size >= _LARGE:
        assert one.data_ptr() % _LARGE == 0
