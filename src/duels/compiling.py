"""Compiling plain Python kernels with numba, kept on disk and never stale.

A kernel calls other functions by global names. `compile_with` gives a copy of its code a namespace in which all of
these are compiled too, some replaced by others if asked. What is compiled from this package's code alone is kept on
disk, under a name that carries a hash of all the code and constants it was made from: editing any kernel in any file
makes a new one. (numba's own cache watches only the file of the function it compiled.)
"""

import hashlib
import types
from collections.abc import Callable, Iterator
from typing import Any

_made: dict[tuple, Callable] = {}


def compile_with(
    function: Callable, kernels: dict[str, Callable] | None = None, *, name: str = "", counted: bool = False
) -> Callable:
    """The function compiled, with `kernels` in the places of its global names.

    `counted` keeps reference counts, which kernels that make arrays need. The compiled code releases the GIL.
    """
    kernels = kernels or {}
    key = (function, name, counted, *kernels.items())
    if key not in _made:
        _made[key] = _compiled(function, kernels, name or function.__name__, counted)
    return _made[key]


def rebound(function: Callable, namespace: dict[str, Any], name: str = "") -> Callable:
    """The same code with other global names."""
    code = function.__code__
    if name:
        code = code.replace(co_name=name, co_qualname=name)
    return types.FunctionType(code, namespace, name or function.__name__, function.__defaults__, function.__closure__)


def _compiled(function: Callable, kernels: dict[str, Callable], name: str, counted: bool) -> Callable:
    import numba

    # Inlined, and without reference counts on the arrays passed about, a step of a policy is four times as fast.
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy", "forceinline": True, "_nrt": counted}
    made: dict[Callable, Any] = {}

    def compiled(used: Callable) -> Any:
        if used not in made:
            namespace = dict(used.__globals__)
            made[used] = numba.njit(**options)(rebound(used, namespace, used.__name__))
            for key, deeper in _functions_used(used):
                namespace[key] = compiled(deeper)
        return made[used]

    namespace = dict(function.__globals__)
    for key, used in _functions_used(function):
        namespace[key] = compiled(used)
    for key, kernel in kernels.items():
        namespace[key] = compiled(kernel)
    entry = rebound(function, namespace, f"{name}_{fingerprint(function, kernels, options)}")
    ours = all(one.__module__.startswith("duels.") for one in (function, *kernels.values()))
    try:
        return numba.njit(cache=ours, **options)(entry)
    except RuntimeError:  # nowhere to keep it: neither beside the package nor in the user's cache directory
        return numba.njit(**options)(entry)


def _functions_used(function: Callable) -> Iterator[tuple[str, Callable]]:
    """The plain functions that a function calls by global name."""
    for name in function.__code__.co_names:
        used = function.__globals__.get(name)
        if isinstance(used, types.FunctionType):
            yield name, used


def fingerprint(function: Callable, kernels: dict[str, Callable], options: dict[str, Any]) -> str:
    """A hash of all that the compiled code depends on: code, constants and the fields of tuples."""
    seen: dict[Callable, None] = {}

    def walk(used: Callable) -> None:
        if used not in seen:
            seen[used] = None
            for _, deeper in _functions_used(used):
                walk(deeper)

    for one in (function, *kernels.values()):
        walk(one)
    text = [str(options)]
    text += [f"{name}={kernel.__module__}.{kernel.__qualname__}" for name, kernel in kernels.items()]
    for one in seen:
        text.append(f"{one.__module__}.{one.__qualname__}{_code_text(one.__code__)}{one.__defaults__}")
        for name in one.__code__.co_names:
            value = one.__globals__.get(name)
            if isinstance(value, bool | int | float | str | tuple):
                text.append(f"{name}={value!r}")
    for space in {one.__module__: one.__globals__ for one in seen}.values():
        text += [f"{name}{value._fields}" for name, value in space.items() if hasattr(value, "_fields")]
    return hashlib.sha256("\n".join(text).encode()).hexdigest()[:16]


def _code_text(code: types.CodeType) -> str:
    constants = [_code_text(value) if isinstance(value, types.CodeType) else repr(value) for value in code.co_consts]
    return f"{code.co_code.hex()}{constants}{code.co_names}{code.co_varnames}{code.co_freevars}"
