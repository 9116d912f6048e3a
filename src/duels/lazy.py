"""Names that are loaded on first use, so that importing a package is fast."""

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module


def attach(
    package: str, homes: Mapping[str, str], namespaces: Collection[str] = ()
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Make `__getattr__` and `__dir__` for a package.

    Args:
        package: The package's `__name__`.
        homes: For each public name, the submodule that defines it.
        namespaces: Submodules that are public themselves.

    Returns:
        The two functions, to be assigned in the package's `__init__`.
    """

    def get(name: str) -> object:
        if name in homes:
            value = getattr(import_module(f".{homes[name]}", package), name)
            setattr(sys.modules[package], name, value)
            return value
        if name in namespaces:
            return import_module(f".{name}", package)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return get, lambda: sorted([*homes, *namespaces])
