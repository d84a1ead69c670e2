"""What the version of a kernel's code counts: all that may make it, and no front pass."""

from __future__ import annotations

import subprocess
import sys

import pytest
from chosen_kernels import kernels, text_of

from metadef.codegen.import_closure import imported_names
from metadef.codegen.version import code_files, code_version, compiler_version
from metadef.pipelines import find_pipeline
from metadef.runtime.host import this_device

# A worker that compiles a kernel, and a table that describes it, each in a new interpreter.
_BUILT = """
import sys
from metadef.codegen.build import build_kernel
for text in sys.stdin.read().split("// next"):
    build_kernel(text, "k")
print(*(name for name in sys.modules if name.partition(".")[0] == "metadef"))
"""
_DESCRIBED = _BUILT.replace("codegen.build", "predict.described").replace(
    'build_kernel(text, "k")', "describe(text).space.features()"
).replace("build_kernel", "describe")  # fmt: skip


@pytest.mark.parametrize("script", [_BUILT, _DESCRIBED])
def test_all_that_a_kernel_goes_through_is_counted(script: str) -> None:
    found = kernels(this_device().vector_bits // 16)
    texts = "// next".join(text_of(found[name]) for name in ("linear", "conv3x3", "softmax"))
    done = subprocess.run(
        [sys.executable, "-c", script], input=texts, capture_output=True, text=True, check=True
    )
    loaded = set(done.stdout.split())
    assert "metadef.passes.vectorize" in loaded
    assert loaded <= set(code_files()), f"not counted: {loaded - set(code_files())}"


def test_what_measures_is_counted_and_what_runs_is_not() -> None:
    assert "metadef.measure.kernel_process" in code_files()
    assert "metadef.runtime.program" not in code_files()


def test_front_passes_and_models_of_cost_are_not_counted() -> None:
    front = {stage.name.replace("-", "_") for stage in find_pipeline("front")}
    counted = code_files()
    assert not {f"metadef.passes.{name}" for name in front} & set(counted)
    assert not any(name.startswith(("metadef.frontend", "metadef.cost.model")) for name in counted)
    assert {"metadef.passes.linalg_lowerings.pool", "metadef.dialects.metadef.ops.conv"} <= set(
        counted
    )
    assert code_version() != compiler_version()


def test_imports_are_read_off_the_text() -> None:
    source = """
import a.b
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    import only_for_types
else:
    import otherwise
def f(name):
    from .near import g
    from ..far import h
    importlib.import_module(f"metadef.passes.vector_math.{name}")
"""
    found = set(imported_names(source, "p.q"))
    assert {"a.b", "otherwise", "p.q.near", "p.q.near.g", "p.far", "p.far.h"} <= found
    assert "metadef.passes.vector_math.exponential" in found
    assert "only_for_types" not in found
    by_name = "import_module('metadef.' + name)"
    assert not list(imported_names(by_name, "p", by_name_is_known=True))
    with pytest.raises(AssertionError, match="what it may be is not said"):
        list(imported_names(by_name, "p"))
