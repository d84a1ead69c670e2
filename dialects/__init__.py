"""Metadef's dialects; `load_dialects` loads them all into the current context."""

from typing import Any

#: dialects that user files brought in (`metadef.loading`); every context made later has them
USER_DIALECTS: list[type[Any]] = []


def load_dialects() -> None:
    """Load the metadef, device and users' dialects into the current MLIR context."""
    from metadef.dialects.device.dialect import DeviceDialect
    from metadef.dialects.metadef.dialect import MetadefDialect, import_ops

    import_ops()
    MetadefDialect.load()
    DeviceDialect.load()
    for dialect in USER_DIALECTS:
        dialect.load()
