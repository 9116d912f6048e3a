"""Whether a function is the one that a study knows: a name for people, and a hash of what it does.

It is the same in every process, and wherever the code stands in its file. A program that was changed has another one.
"""

import dis
import functools
import hashlib
import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from .questions import Judge

ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
FUNCTIONS = (types.FunctionType, types.MethodType, functools.partial)
FIXED = (str, bytes, bool, int, float, complex, types.NoneType)  # types of values that cannot change


def fingerprint(function: Callable[..., Any]) -> str:
    """Return the name of a function and a hash of what it does.

    Of a function this is its code, with the text and numbers that it uses, and that of the functions in the same file
    and of the judges that it calls; of a `functools.partial` the function and its arguments; of another object its
    class and `__call__`. If `identity` of any of them is text, it counts instead of the code.

    Args:
        function: A judge, or a candidate.

    Returns:
        Such as `shorter 3f0c9a71d2b84e56`.

    Example:
        >>> longer = lambda left, right: "left" if len(left) > len(right) else "right"
        >>> fingerprint(longer) == fingerprint(lambda left, right: "left")
        False
    """
    if isinstance(function, Judge):
        function = function.function
    digest = hashlib.blake2b(_callable_text(function, set()).encode("utf-8", "replace"), digest_size=8).hexdigest()
    return f"{_label(function)} {digest}"


def fingerprints(judge: Callable[..., Any] | Mapping[str, Callable[..., Any]]) -> dict[str | None, str]:
    """Return the fingerprints of judges by name; the name of a single one is None."""
    if isinstance(judge, Mapping):
        return {name: fingerprint(one) for name, one in judge.items()}
    return {None: fingerprint(judge)}


def _label(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__name__", None)
    return name if isinstance(name, str) else type(function).__name__


def _callable_text(function: Any, seen: set[int]) -> str:
    """What a function does; functions in `seen` are left out, since they may call each other."""
    own = _identity(function)
    if own is not None:
        return f"{_label(function)}: {own}"
    if id(function) in seen:
        return ""
    seen.add(id(function))
    if isinstance(function, functools.partial):
        return f"partial {_callable_text(function.func, seen)}{_text(function.args)}{_text(function.keywords)}"
    if isinstance(function, types.MethodType):
        return f"{type(function.__self__).__qualname__} {_callable_text(function.__func__, seen)}"
    if isinstance(function, types.FunctionType):
        return _function_text(function, seen)
    wrapped = getattr(function, "__wrapped__", None) or getattr(type(function), "__call__", None)  # noqa: B004
    inner = _callable_text(wrapped, seen) if isinstance(wrapped, types.FunctionType) else ""
    return f"{type(function).__qualname__} {getattr(function, '__qualname__', '')}{inner}"


def _identity(value: Any) -> str | None:
    """What a value says that it is; other attributes are not looked at, which may have effects."""
    if inspect.getattr_static(value, "identity", None) is None:
        return None
    said = getattr(value, "identity", None)
    return said if isinstance(said, str) else None


def _function_text(function: types.FunctionType, seen: set[int]) -> str:
    codes = list(_all_codes(function.__code__))
    parts = [function.__qualname__, *map(_code_text, codes)]
    parts.append(_text((function.__defaults__, tuple(sorted((function.__kwdefaults__ or {}).items()))), fixed=True))
    changed = {
        one.argval
        for code in codes
        for one in dis.get_instructions(code)
        if one.opname in ("STORE_GLOBAL", "STORE_DEREF")
    }
    for name, value in _values_used(function, codes):
        if isinstance(value, FUNCTIONS) or _identity(value) is not None:
            parts.append(f"{name}={_callable_text(value, seen)}")
        elif name not in changed:
            parts.append(f"{name}={_text(value, fixed=True)}")
    return "\n".join(parts)


def _values_used(function: types.FunctionType, codes: list[types.CodeType]) -> Iterator[tuple[str, Any]]:
    """The values from outside that a function uses: of functions in other files, and of modules, only the names."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
        try:
            yield name, cell.cell_contents
        except ValueError:  # it has no value yet
            continue
    for name in sorted({name for code in codes for name in code.co_names}):
        value = function.__globals__.get(name)
        is_helper = isinstance(value, types.FunctionType) and value.__module__ == function.__module__
        if is_helper or isinstance(value, (*FIXED[:-1], tuple, frozenset)) or _identity(value) is not None:
            yield name, value


def _all_codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _all_codes(constant)


def _code_text(code: types.CodeType) -> str:
    """The code without the places where it stands."""
    constants = [_text(one) for one in code.co_consts if not isinstance(one, types.CodeType)]
    return f"{code.co_name} {code.co_code.hex()}{constants}{code.co_names}"


def _text(value: Any, fixed: bool = False) -> str:
    """A value as text that is the same in every process; with `fixed`, only the type of a value that may change."""
    if isinstance(value, FIXED):
        return repr(value)
    if isinstance(value, FUNCTIONS) or _identity(value) is not None:
        return _callable_text(value, set())
    inner = functools.partial(_text, fixed=fixed)
    if isinstance(value, frozenset) or (isinstance(value, set) and not fixed):
        return f"{{{', '.join(sorted(map(inner, value)))}}}"
    if isinstance(value, tuple) or (isinstance(value, list) and not fixed):
        return f"({', '.join(map(inner, value))})"
    if isinstance(value, dict) and not fixed:
        return f"{{{', '.join(f'{inner(key)}: {inner(one)}' for key, one in value.items())}}}"
    if fixed:
        return type(value).__qualname__
    return f"{type(value).__qualname__} {ADDRESS.sub('', repr(value))}"
