"""Every model of the zoo, compiled, is as accurate as eager."""

from __future__ import annotations

import pytest
import zoo
from accuracy import assert_as_accurate_as_eager

import metadef


@pytest.mark.parametrize("name", zoo.ZOO)
def test_is_as_accurate_as_eager(name: str) -> None:
    model = zoo.build(name)
    compiled = metadef.compile(model.module, model.args, model.kwargs, fallback="error")
    assert_as_accurate_as_eager(compiled, model.module, model.args, model.kwargs)
