"""Fixtures that several files share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Give a module a compile cache of its own, empty at first."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("METADEF_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield
