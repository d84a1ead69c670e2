"""MLIR's own passes, run from Python ones: again in one context, and in the next."""

import pytest

from metadef import ir
from metadef.upstream import run_upstream

_DEAD = "func.func @f() { %0 = arith.constant 1 : i32  return }"


def _cleaned(context: ir.Context) -> str:
    with context, ir.Location.unknown():
        module = ir.Module.parse(_DEAD)
        run_upstream(module.operation, "canonicalize,cse")
        return str(module)


def test_runs_again_in_one_context_and_in_another() -> None:
    first, second = ir.make_context(), ir.make_context()
    texts = [_cleaned(context) for context in (first, first, second, first)]
    assert len(set(texts)) == 1 and "arith" not in texts[0]


def test_an_unknown_pass_is_an_error_each_time() -> None:
    context = ir.make_context()
    with context, ir.Location.unknown():
        module = ir.Module.parse(_DEAD)
        for _ in range(2):
            with pytest.raises(ValueError, match="does not refer to a registered pass"):
                run_upstream(module.operation, "no-such-pass")
