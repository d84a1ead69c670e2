"""The arguments of an op as text that tells them from others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

#: arguments whose text says all there is to know
_PLAIN = (
    *(type(None), bool, int, float, complex, str),
    *(torch.dtype, torch.device, torch.layout, torch.memory_format),
)


class UnknownArgumentError(Exception):
    """Something has no text that tells it from others."""


def is_plain(value: Any) -> bool:
    """Tell whether a value's text says all there is to know."""
    return type(value) in _PLAIN


def argument_text(argument: Any, leaf: Callable[[Any], str | None]) -> str:
    """Return an argument as text; `leaf` gives the text of what stands for a value, or None.

    Raises:
        UnknownArgumentError: a part of it has no text.
    """
    if isinstance(argument, list | tuple):
        return f"[{', '.join([argument_text(a, leaf) for a in argument])}]"
    if isinstance(argument, dict):
        return f"{{{', '.join([f'{k}: {argument_text(v, leaf)}' for k, v in argument.items()])}}}"
    if isinstance(argument, slice):
        return f"slice{argument_text((argument.start, argument.stop, argument.step), leaf)}"
    if is_plain(argument):
        return repr(argument)
    text = leaf(argument)
    if text is None:
        raise UnknownArgumentError(f"argument {argument!r}")
    return text
