"""Which files of the package a module goes through: what it imports, and what that imports."""

from __future__ import annotations

import ast
import importlib.resources
from collections.abc import Collection, Iterable, Iterator
from importlib.resources.abc import Traversable
from typing import TypeGuard

_PACKAGE = "metadef"


def import_closure(roots: Iterable[str], by_name: Collection[str] = ()) -> dict[str, bytes]:
    """Return the source of `roots`, full names of modules, and of all modules of the package that
    they import: at their top, in a function, or by a name made at run time, which stands for all
    modules of the folder. What modules in `by_name` import so is left to the caller.

    Raises:
        AssertionError: a root is missing, or an import by a name whose folder cannot be read off.
    """
    found: dict[str, bytes] = {}
    pending = list(sources(roots))
    while pending:
        name = pending.pop()
        file = None if name in found else _file(name)
        if file is None:
            continue
        found[name] = file.read_bytes()
        package = name if file.name == "__init__.py" else name.rpartition(".")[0]
        pending += [name.rpartition(".")[0], *imported_names(found[name], package, name in by_name)]
    return dict(sorted(found.items()))


def imported_names(
    source: bytes | str, package: str, by_name_is_known: bool = False
) -> Iterator[str]:
    """Yield what a module of a package imports, and names in modules that may be modules."""
    for node in _executed(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: 1 - node.level or None] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)
        elif _imports_by_name(node) and not by_name_is_known:
            yield from _modules_in(_folder_named(node.args[0]))


def _executed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a tree but those that only type checkers see."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (_is_for_types(node) and child in node.body):
            yield from _executed(child)


def _is_for_types(node: ast.AST) -> TypeGuard[ast.If]:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _imports_by_name(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in ("import_module", "__import__")


def _folder_named(name: ast.expr) -> str:
    """Return `a.b` of f"a.b.{c}"."""
    parts = name.values if isinstance(name, ast.JoinedStr) else [name]
    first = parts[0]
    known = first.value if isinstance(first, ast.Constant) else None
    assert isinstance(known, str), f"import of {ast.unparse(name)}: what it may be is not said"
    return known.rpartition(".")[0]


def _modules_in(folder: str) -> Iterator[str]:
    if folder.partition(".")[0] == _PACKAGE:
        for entry in importlib.resources.files(folder).iterdir():
            if entry.name.endswith(".py") and entry.name != "__init__.py":
                yield f"{folder}.{entry.name[:-3]}"


def sources(names: Iterable[str]) -> dict[str, bytes]:
    """Return the source of modules of the package, by their full names.

    Raises:
        AssertionError: one is missing.
    """
    found: dict[str, bytes] = {}
    for name in names:
        file = _file(name)
        assert file is not None, f"no module {name}"
        found[name] = file.read_bytes()
    return found


def _file(name: str) -> Traversable | None:
    """Return the file of a module of the package, None where it is none."""
    package, *path = name.split(".")
    if package != _PACKAGE:
        return None
    place: Traversable = importlib.resources.files(_PACKAGE)
    for part in path[:-1]:
        place = place / part
    folder = place / path[-1] if path else place
    candidates = [folder / "__init__.py", *([place / f"{path[-1]}.py"] if path else [])]
    return next((file for file in candidates if file.is_file()), None)
