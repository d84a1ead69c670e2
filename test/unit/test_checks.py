"""The checks of the checkout itself: layers, names, generated docs; each finds what it must."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from metadef import ir

ROOT = Path(__file__).resolve().parent.parent.parent


def tool(name: str) -> ModuleType:
    """Import a script of tools/, whose name has no ending."""
    loader = importlib.machinery.SourceFileLoader(name, str(ROOT / "tools" / name))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_imports_run_one_way() -> None:
    assert tool("check_layers").check(ROOT / "python" / "metadef") == []


@pytest.mark.parametrize(
    ("path", "source", "message"),
    [
        ("symbolic.py", "from metadef.passes import x", "'symbolic' imports metadef.passes"),
        ("symbolic.py", "def f():\n    import metadef.cli", "symbolic.py:2: 'symbolic' imports"),
        ("passes/x.py", "from metadef import api", "'passes' imports metadef.api"),
        ("passes/x.py", "from ..cli import opt", "'passes' imports metadef.cli"),
        ("dialects/metadef/ops/x.py", "from torch_mlir import ir", "imports torch_mlir"),
        ("cli/x.py", "import torch_mlir.ir", "say `from metadef import ir`"),
        ("misc.py", "", "'misc' has no place in LAYERS"),
    ],
)
def test_an_import_that_goes_the_other_way_is_found(path: str, source: str, message: str) -> None:
    (problem,) = tool("check_layers").check_source(path, source)
    assert message in problem


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("cli/x.py", "from metadef import api, ir\nfrom metadef.passes.y import Y"),
        ("passes/x.py", "from .y import Y\nfrom metadef.dialects.metadef import ops\nimport numpy"),
        ("passes/__init__.py", "from .y import Y"),
        ("ir.py", "from torch_mlir import ir"),
    ],
)
def test_an_import_of_what_is_below_is_fine(path: str, source: str) -> None:
    assert tool("check_layers").check_source(path, source) == []


def test_the_name_is_the_address() -> None:
    assert tool("check_names").check(ROOT) == []


def test_wrong_names_are_found(tmp_path: Path) -> None:
    for folder in ("passes", "dialects/metadef/ops", "test/passes", "test/dialects/metadef"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "passes/fuse_all.py").write_text("class FuseEverything: pass")
    (tmp_path / "passes/keep.py").write_text("class Keep: pass")
    (tmp_path / "test/passes/keep.mlir").touch()
    (tmp_path / "test/passes/gone.mlir").touch()
    (tmp_path / "dialects/metadef/ops/add.py").write_text(
        'class AddOp(Op, name="sum"):\n    """Add."""\n'
    )
    assert tool("check_names").check(tmp_path) == [
        "passes/fuse_all.py: expected class FuseAll",
        "passes/fuse_all.py: expected test/passes/fuse-all.mlir",
        "passes/keep.py: expected Before: and After: in the docstring of Keep",
        "test/passes/gone.mlir: no pass is called 'gone'",
        'dialects/metadef/ops/add.py: expected class AddOp(..., name="add")',
        "dialects/metadef/ops/add.py: expected builder add()",
        "dialects/metadef/ops/add.py: expected test/dialects/metadef/add.mlir",
    ]


def test_a_stale_document_is_found(tmp_path: Path) -> None:
    docs = tool("gen_docs")
    with ir.make_context():
        assert docs.stale(tmp_path) == list(docs.FILES)
        for path, text in docs.FILES.items():
            (tmp_path / path).parent.mkdir(exist_ok=True)
            (tmp_path / path).write_text(text())
        assert docs.stale(tmp_path) == []
        (tmp_path / "docs/cli.md").write_text("old")
        assert docs.stale(tmp_path) == ["docs/cli.md"]
