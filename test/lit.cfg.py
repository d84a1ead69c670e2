"""lit's configuration: `.mlir` and `.test` files below test/ run with metadef-opt and filecheck."""

import os
import sys
from pathlib import Path

import lit.formats

source = Path(__file__).resolve().parent
root = source.parent

config.name = "metadef"  # noqa: F821
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir", ".test"]  # noqa: F821
config.excludes = ["Inputs", "Output", "unit", "e2e"]  # noqa: F821
config.test_source_root = str(source)  # noqa: F821
config.test_exec_root = str(root / "build" / "test")  # noqa: F821
config.environment["PATH"] = os.pathsep.join(  # noqa: F821
    [str(root / "tools"), str(Path(sys.executable).parent), os.environ.get("PATH", "")]
)
config.environment["PYTHONDONTWRITEBYTECODE"] = "1"  # noqa: F821
config.substitutions.append(("%root", str(root)))  # noqa: F821
