"""The text form of a pass's options: `{max-ops=8 names=a,b flag=true}` to typed fields and back."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from typing import Any, Literal, Union

from metadef.diagnostics import MetadefError, near_names
from metadef.pipeline_text import read_options

_SCALARS = (bool, int, float, str)


def options_of(cls: type[Any]) -> dict[str, tuple[dataclasses.Field[Any], Any]]:
    """Return the options of a pass class that text can give: kebab-case name to (field, type).

    A field of any other type (a weight store, say) is set from Python only.
    """
    hints = _type_hints(cls)  # type: ignore[arg-type]
    return {
        f.name.replace("_", "-"): (f, hints[f.name])
        for f in dataclasses.fields(cls)
        if _is_textual(hints[f.name])
    }


@functools.cache
def _type_hints(cls: Any) -> dict[str, Any]:
    return typing.get_type_hints(cls)


def parse_options(cls: type[Any], pass_name: str, text: str) -> dict[str, Any]:
    """Return the keyword arguments for `cls` that `text` (without braces) says.

    Raises:
        MetadefError: an unknown or repeated option, or a value of the wrong type.
    """
    known = options_of(cls)
    values: dict[str, Any] = {}
    for key, value in read_options(text):
        if key not in known:
            have = f" (it has {', '.join(known)})" if known else " (it has none)"
            raise MetadefError(
                f"pass '{pass_name}': unknown option '{key}'{near_names(key, known) or have}"
            )
        option, kind = known[key]
        if option.name in values:
            raise MetadefError(f"pass '{pass_name}': option '{key}' is given twice")
        try:
            values[option.name] = _convert(kind, "true" if value is None else value)
        except ValueError:
            got = f"'{value}'" if value is not None else "no value"
            raise MetadefError(
                f"pass '{pass_name}': option '{key}': expected {type_text(kind)}, got {got}"
            ) from None
    for key, (option, kind) in known.items():
        if option.name not in values and default_of(option) is dataclasses.MISSING:
            raise MetadefError(
                f"pass '{pass_name}': option '{key}' must be given: {key}=<{type_text(kind)}>"
            )
    return values


def options_text(instance: Any) -> str:
    """Return `{...}` with the options that differ from their defaults, or ''."""
    parts = []
    for key, (option, _) in options_of(type(instance)).items():
        value = getattr(instance, option.name)
        if value != default_of(option):
            parts.append(f"{key}={value_text(value)}")
    return "{" + " ".join(parts) + "}" if parts else ""


def default_of(option: dataclasses.Field[Any]) -> Any:
    """Return the default of a dataclass field, or `dataclasses.MISSING`."""
    if option.default_factory is not dataclasses.MISSING:
        return option.default_factory()
    return option.default


def value_text(value: Any) -> str:
    """Return the text that parses back to `value`."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return str(value).lower()
    text = ",".join(map(value_text, value)) if isinstance(value, tuple) else str(value)
    quote = "'" if '"' in text else '"'
    return f"{quote}{text}{quote}" if not text or set(text) & set(" \t\n{}()[]'\"") else text


def type_text(kind: Any) -> str:
    """Return what a person should write for a value of type `kind`."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return " or ".join(map(str, args))
    if origin is tuple:
        return f"{type_text(args[0])},..."
    if origin in (Union, types.UnionType):
        return " or ".join("none" if a is type(None) else type_text(a) for a in args)
    return {bool: "true or false", int: "integer", float: "number", str: "string"}[kind]


def _is_textual(kind: Any) -> bool:
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        return all(isinstance(a, str) for a in args)
    if origin is tuple:
        return len(args) == 2 and args[1] is Ellipsis and _is_textual(args[0])
    if origin in (Union, types.UnionType):
        return all(a is type(None) or _is_textual(a) for a in args)
    return kind in _SCALARS


def _convert(kind: Any, text: str) -> Any:
    """Return `text` as a value of type `kind`; ValueError if it is none."""
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is Literal:
        if text not in args:
            raise ValueError(text)
        return text
    if origin is tuple:
        return tuple(_convert(args[0], part.strip()) for part in text.split(",") if part.strip())
    if origin in (Union, types.UnionType):
        if text == "none" and type(None) in args:
            return None
        for candidate in args:
            if candidate is not type(None):
                try:
                    return _convert(candidate, text)
                except ValueError:
                    continue
        raise ValueError(text)
    if kind is bool:
        if text not in ("true", "false"):
            raise ValueError(text)
        return text == "true"
    return kind(text)
