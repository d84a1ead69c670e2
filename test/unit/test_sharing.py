"""How boxes of a product are cut for the cores."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from metadef.passes.loop_nests.boxes import is_even
from metadef.passes.loop_nests.schedule import Schedule
from metadef.passes.loop_nests.sharing import even, shared_out

_BLOCK = Schedule(lanes=1, over_reduction=False, width=8, vectors=2, row_dim=0, rows=6)


def _cut(rows: int, lanes: int, box: tuple[int, int], cores: int) -> tuple[int, int]:
    stage: Any = SimpleNamespace(extents=(rows, lanes, 512), parallel_dims=[0, 1], inside=())
    found = shared_out(stage, _BLOCK, {0: box[0], 1: box[1]}, cores)
    return found[0], found[1]


@pytest.mark.parametrize(
    "rows, lanes, box, cores, cut",
    [
        pytest.param(1024, 1024, (64, 16), 2, (64, 16), id="nobody_waits"),
        pytest.param(20, 41, (20, 48), 1, (20, 48), id="one_core_has_all"),
        pytest.param(20, 41, (20, 48), 2, (10, 48), id="few_panels_stay_together"),
        pytest.param(49, 512, (49, 512), 2, (49, 256), id="many_panels_are_halved"),
        pytest.param(50, 144, (50, 16), 2, (25, 16), id="nine_panels_are_not_shared_out_evenly"),
        pytest.param(6, 16, (6, 16), 8, (6, 16), id="a_register_block_is_not_cut"),
    ],
)
def test_boxes_are_cut_until_no_core_waits(
    rows: int, lanes: int, box: tuple[int, int], cores: int, cut: tuple[int, int]
) -> None:
    assert _cut(rows, lanes, box, cores) == cut


@pytest.mark.parametrize("extent, most, part", [(1024, 60, 57), (128, 64, 64), (7, 100, 7)])
def test_parts_are_even(extent: int, most: int, part: int) -> None:
    assert even(extent, most) == part


@pytest.mark.parametrize("total, even_blocks", [(12, True), (11, True), (17, True), (4, False)])
def test_rows_are_blocks_of_six_and_five(total: int, even_blocks: bool) -> None:
    assert is_even(total, 6) == even_blocks
