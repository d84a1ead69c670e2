"""lit's configuration: `.mlir` and `.test` files below test/ run with metadef-opt and filecheck."""

# ruff: noqa: F821  lit runs this file with `config` defined

import os
import sys
from pathlib import Path

import lit.formats

source = Path(__file__).resolve().parent
root = source.parent

config.name = "metadef"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs", "Output", "unit", "e2e"]
config.test_source_root = str(source)
config.test_exec_root = str(root / "build" / "test")
config.environment["PATH"] = os.pathsep.join(
    [str(root / "tools"), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
)
