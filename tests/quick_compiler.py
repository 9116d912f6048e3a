"""Numba compiles for tests in two thirds of the time, and each function in one process only.

What is compiled computes the same. Only work is left out whose result no test would use.
"""

import fcntl
import functools
import gc
import os
from pathlib import Path


def install() -> None:
    compile_quickly()
    compile_once()


def compile_quickly() -> None:
    """Patch numba: a function that is only called by compiled ones is linked into them, and nothing else.

    Numba also optimizes it by itself and turns it into machine code, which nobody runs: Python cannot call it.
    """
    from numba.core import codegen, compiler, cpu
    from numba.core.environment import lookup_environment
    from numba.core.targetconfig import ConfigStack, TargetConfig

    library, context, depth = codegen.JITCodeLibrary, cpu.CPUContext, 0
    compile_one, get_executable = compiler.compile_extra, context.get_executable
    optimize, make_usable = library._optimize_final_module, library._finalize_final_module

    def compile_extra(*arguments, **options):
        nonlocal depth
        collects, depth = gc.isenabled(), depth + 1
        gc.disable()  # a compiler makes many objects, and keeps most of them
        try:
            return compile_one(*arguments, **options)
        finally:
            depth -= 1
            if collects:
                gc.enable()

    def get_linked_or_executable(self, linked, description, environment):
        if depth > 1 and ConfigStack.top_or_none().no_cpython_wrapper:
            linked.is_only_linked = True
            linked._ensure_finalized()
            module, name = description.lookup_module(), description.qualname.rpartition(".")[2]
            return cpu._dynfunc.make_function(module, name, "only linked", 0, environment, (linked,))
        executable = get_executable(self, linked, description, environment)
        for variable in linked._final_module.global_variables:  # also those of the functions that were linked into it
            found = lookup_environment(variable.name) if variable.name.startswith("_ZN08NumbaEnv") else None
            if found is not None:
                linked.codegen.set_env(variable.name, found)
        return executable

    def optimize_last(self):
        if depth <= 1:
            optimize(self)

    def make_usable_if_called(self):
        if not getattr(self, "is_only_linked", False):
            make_usable(self)
            return
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._finalized = True

    compiler.compile_extra, context.get_executable = compile_extra, get_linked_or_executable
    library._optimize_final_module, library._finalize_final_module = optimize_last, make_usable_if_called
    # Numba compares all options of two functions thousands of times, each through a property.
    TargetConfig.values = lambda self: find_defaults(type(self)) | self._values


@functools.cache
def find_defaults(kind: type) -> dict[str, object]:
    """The default of each option of that kind of target."""
    return {name: one.default for name, one in kind.options.items()}


def compile_once() -> None:
    """Patch numba: what one worker compiles for the cache, others that need it too wait for."""
    from numba.core.caching import NullCache
    from numba.core.dispatcher import Dispatcher

    compile_or_load = Dispatcher.compile
    locks = Path(os.environ["NUMBA_CACHE_DIR"]) / "locks"
    try:
        locks.mkdir(parents=True, exist_ok=True)
    except OSError:  # nothing can be kept there
        return

    def compile_alone(self, signature):
        if isinstance(self._cache, NullCache):
            return compile_or_load(self, signature)
        with open(locks / self.py_func.__name__, "w") as lock:  # closing it opens the lock
            fcntl.flock(lock, fcntl.LOCK_EX)
            return compile_or_load(self, signature)

    Dispatcher.compile = compile_alone
