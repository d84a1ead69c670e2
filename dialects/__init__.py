"""Metadef's dialects; `load_dialects` loads them all into the current context."""


def load_dialects() -> None:
    """Load the metadef and device dialects into the current MLIR context."""
    from metadef.dialects.device.dialect import DeviceDialect
    from metadef.dialects.metadef.dialect import MetadefDialect, import_ops

    import_ops()
    MetadefDialect.load()
    DeviceDialect.load()
