"""Metadef compiles PyTorch models to native programs adapted to the device they run on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from metadef.api import check, compile
    from metadef.diagnostics import MetadefError
    from metadef.tuning.tune import tune

_EXPORTS = {
    "compile": "api",
    "check": "api",
    "tune": "tuning.tune",
    "MetadefError": "diagnostics",
}

__all__ = ["MetadefError", "__version__", "check", "compile", "tune"]


def __getattr__(name: str) -> Any:
    """Import the public functions when first used: `import metadef` loads no torch and no MLIR."""
    if name in _EXPORTS:
        import importlib

        return getattr(importlib.import_module(f"metadef.{_EXPORTS[name]}"), name)
    raise AttributeError(f"module 'metadef' has no attribute '{name}'")
