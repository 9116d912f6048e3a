"""Compile plain Python kernels with numba, with a cache on disk that is never stale.

A kernel calls other functions by global names. `compile_with` copies its code into a namespace in which these are
compiled too, and in which kernels replace global names that are None. Code of this package is cached on disk under a
name that contains a hash of all code and constants it depends on, so editing any kernel in any file compiles it again.
(numba's own cache checks only the file of the function that was compiled.)
"""

import hashlib
import os
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

Kernel = Callable[..., Any]  # a plain Python function that numba can compile
Kernels = Mapping[str, Kernel]  # by the global name that they replace

# Studies and experiments store the hash of their policy's code: code that moved is hashed under its first module name.
MOVED = {"duels.engine.loop": "duels.loop"}

_compiled: dict[tuple[object, ...], Kernel] = {}


def compile_with(
    function: Kernel,
    kernels: Kernels | None = None,
    *,
    name: str = "",
    refcounted: bool = False,
    strict: bool = False,
) -> Kernel:
    """Compile a function and everything it calls. The compiled code releases the GIL.

    Args:
        function: The function.
        kernels: Functions that replace the global names that are None, in it and in all that it calls.
        name: A name for the compiled function, used in the cache; by default the function's own.
        refcounted: Whether to keep reference counts. Kernels that create arrays need them.
        strict: Whether to raise ZeroDivisionError as Python does; else x/0 is infinite or NaN.
    """
    kernels = kernels or {}
    key = (function, name, refcounted, strict, *kernels.items())
    if key not in _compiled:
        _compiled[key] = _compile(function, kernels, name or function.__name__, refcounted, strict)
    return _compiled[key]


def is_possible() -> bool:
    """Return whether numba compiles anything: not if the environment turns it off."""
    return os.environ.get("NUMBA_DISABLE_JIT", "") in ("", "0")


def interpret_with(function: Kernel, kernels: Kernels) -> Kernel:
    """Like `compile_with`, but the result runs in the interpreter."""
    copied: Kernel = _copy_function(function, kernels, lambda copy: copy, {})
    return copied


def _compile(function: Kernel, kernels: Kernels, name: str, refcounted: bool, strict: bool) -> Kernel:
    import numba

    # Inlined and without reference counts on arrays, a step of a policy is four times as fast.
    options: dict[str, Any] = {"nogil": True, "error_model": "python" if strict else "numpy"}
    options |= {"forceinline": True, "_nrt": refcounted}
    name = f"{name}_{fingerprint(function, kernels, options | {'entry': 'refcounted'})}"
    # Only the entry is called from Python. Without wrappers for the others, compiling takes two thirds of the time.
    inner = options | {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    entry = _entry(name, function, _copy_function(function, kernels, numba.njit(**inner), {}))
    options["_nrt"] = True  # without reference counts in the entry, every call would leak the generators it is given
    try:
        compiled: Kernel = numba.njit(cache=is_ours(function, *kernels.values()), **options)(entry)
        _keep_by_name(compiled)
    except RuntimeError:  # neither the package's folder nor the user's cache directory is writable
        compiled = numba.njit(**options)(entry)
    return compiled


def _keep_by_name(compiled: Any) -> None:
    """Keep cached code as long as its name is the same, whose hash covers all that it depends on.

    By itself numba drops code when the time of its file has changed, as it does in every new checkout or installation,
    and never finds that of another folder in NUMBA_CACHE_DIR.
    """
    from numba.core.caching import IndexDataCacheFile

    cache: Any = getattr(compiled, "_cache", None)
    shared = os.environ.get("NUMBA_CACHE_DIR")
    if not hasattr(cache, "_impl"):  # it is not cached, or not even compiled
        return
    folder = os.path.join(shared, "duels") if shared else cache.cache_path
    os.makedirs(folder, exist_ok=True)
    cache._cache_file = IndexDataCacheFile(folder, cache._impl.filename_base, source_stamp="in the name")


def _entry(name: str, function: Kernel, compiled: Kernel) -> Kernel:
    """Return a function with the given name, and the arguments and file of `function`, that calls `compiled`.

    Code compiled without reference counts must return numbers, not arrays.
    """
    code = function.__code__
    arguments = ", ".join(code.co_varnames[: code.co_argcount])
    namespace: dict[str, Any] = {"__name__": function.__module__, "compiled": compiled}
    exec(compile(f"def {name}({arguments}):\n    return compiled({arguments})\n", code.co_filename, "exec"), namespace)
    entry: Kernel = namespace[name]
    return entry


def is_ours(*functions: Kernel) -> bool:
    """Return whether all functions belong to this package."""
    return all(one.__module__.startswith("duels.") for one in functions)


def _copy_function(function: Kernel, kernels: Kernels, wrap: Kernel, done: dict[Kernel, Any]) -> Any:
    """A copy of a function and all it calls, with kernels in place of the names that are None."""
    if function not in done:
        namespace = dict(function.__globals__)
        copy = types.FunctionType(
            function.__code__, namespace, function.__name__, function.__defaults__, function.__closure__
        )
        done[function] = wrap(copy)
        for name, used in _functions_used(function, kernels):
            namespace[name] = _copy_function(used, kernels, wrap, done)
    return done[function]


def _functions_used(function: Kernel, kernels: Kernels) -> Iterator[tuple[str, Kernel]]:
    """The plain functions that a function calls by global name, with kernels in place of those that are None."""
    for name in function.__code__.co_names:
        used = function.__globals__.get(name)
        if used is None and name in kernels:
            yield name, kernels[name]
        elif isinstance(used, types.FunctionType) and used.__module__.partition(".")[0] not in ("numpy", "numba"):
            yield name, used


def all_functions(function: Kernel, kernels: Kernels) -> list[Kernel]:
    """List the function and all that it calls, directly or not, in the order of the calls."""
    seen: dict[Kernel, None] = {}

    def walk(used: Kernel) -> None:
        if used not in seen:
            seen[used] = None
            for _, deeper in _functions_used(used, kernels):
                walk(deeper)

    walk(function)
    return list(seen)


def fingerprint(function: Kernel, kernels: Kernels, options: Mapping[str, object]) -> str:
    """Hash all that the compiled code depends on: code, constants (docstrings included) and the fields of tuples."""
    seen = all_functions(function, kernels)
    text = [str(options)]
    for name, kernel in kernels.items():
        text.append(f"{name}={MOVED.get(kernel.__module__, kernel.__module__)}.{kernel.__qualname__}")
    for one in seen:
        module = MOVED.get(one.__module__, one.__module__)
        text.append(f"{module}.{one.__qualname__}{_code_text(one.__code__)}{one.__defaults__}")
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
