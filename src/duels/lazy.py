"""Names that are loaded when they are first used, so that importing a package is quick."""

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from typing import Any


def attach(
    package: str, homes: Mapping[str, str], namespaces: Collection[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Returns `__getattr__` and `__dir__` for a package.

    Args:
        package: The package's `__name__`.
        homes: For each public name the submodule that defines it.
        namespaces: Submodules that are public themselves.
    """

    def get(name: str) -> Any:
        if name in homes:
            value = getattr(import_module(f".{homes[name]}", package), name)
            setattr(sys.modules[package], name, value)
            return value
        if name in namespaces:
            return import_module(f".{name}", package)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted([*homes, *namespaces])
