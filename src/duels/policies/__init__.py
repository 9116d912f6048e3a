"""Policies by name. A policy is a module that follows the policy contract; its parameters are part of its name.

A module defines `Params` (a NamedTuple with defaults), `init`, `select`, `update` and `recommend`. It may define
`skip`, `wait`, `bounds`, `explored` and `check`, and the constants `NAME`, `NEEDS_HORIZON`, `ASSUMES`,
`BASELINE`, `PAPER`, `LIVE`, `LIVE_TIES`, `GOAL` and `THEORY_ALPHA`. See docs/policies.md. A module that combines other
policies defines `wrap(given)` instead, which returns the module to play.
"""

import importlib
import importlib.machinery
import importlib.util
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

from .. import specs
from ..errors import DuelsError, InvalidInput, PolicyError, UnknownName

BUILT_IN = (
    *("verdict", "rucb", "kl_rucb", "rcs", "dts", "dts_plus", "rmed1", "rmed2", "rmed2fh", "merge_rucb", "merge_dts"),
    *("savage", "btm", "interleaved_filter", "doubling"),
    *("ccb", "scb", "ecw_rmed", "borda_ucb"),
    *("sparring", "self_sparring", "multisbm", "rex3", "versatile_db", "winner_stays"),
    "random",
)
REQUIRED = ("Params", "init", "select", "update", "recommend")
ARGUMENTS = {
    "init": "arms, horizon, params",
    "select": "state, params, t, rng",
    "update": "state, params, t, i, j, outcome",
    "recommend": "state, rng",
    "skip": "state, params, t",
    "wait": "state, params, i, j",
    "bounds": "state, params, t",
    "explored": "state",
    "check": "params",
    "restart": "state, params, horizon",
}
GREEK = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "eta": "η"}  # parameters, as papers write them
State = Any  # a policy's own NamedTuple of arrays


@dataclass(frozen=True)
class Policy:
    """A policy with its parameters, as `duels.policies.load_policy("rucb:alpha=0.6")` returns it.

    Attributes:
        name: The policy's name, without parameters.
        module: The module, or other namespace, that follows the contract.
        params: An instance of the module's `Params`.
        source: Where the module can be found again: a name or the path of a file.
    """

    name: str
    module: Any
    params: Any
    source: str | None = None

    def __reduce__(self) -> tuple[object, ...]:
        return _restore_policy, (self.source or getattr(self.module, "__name__", ""), self.params._asdict())

    def __repr__(self) -> str:
        return f"Policy({str(self)!r})"

    def __str__(self) -> str:
        return specs.join(self.name, self.params._asdict(), defaults(self.module))

    @property
    def needs_horizon(self) -> bool:
        """Whether the policy must be told the horizon."""
        return bool(getattr(self.module, "NEEDS_HORIZON", False))

    @property
    def paper(self) -> str:
        """The paper that describes the policy."""
        return str(getattr(self.module, "PAPER", ""))

    @property
    def live(self) -> str:
        """Why a live study with this policy may never end, although an arm beats all others; empty if it does."""
        return str(getattr(self.module, "LIVE", ""))

    @property
    def live_ties(self) -> str:
        """What a live study makes of ties for this policy: they are `skipped`, or entered as `halves`."""
        return str(getattr(self.module, "LIVE_TIES", "halves"))

    def with_goal(self, confidence: float, margin: float) -> "Policy":
        """Return the policy for a study with this goal: a module's `GOAL` names parameters that take it.

        Args:
            confidence: Of the verdict. A parameter that was given keeps its value.
            margin: Of the verdict.
        """
        known = defaults(self.module)
        goal = {"confidence": confidence, "margin": margin}
        taken = [name for name in getattr(self.module, "GOAL", ()) if getattr(self.params, name) == known[name]]
        return load_policy(self, **{name: goal[name] for name in taken})

    def asks_for(self, confidence: float, margin: float) -> bool:
        """Return whether the policy itself asks what this goal of a study needs: `GOAL` names both, and they are set.

        Args:
            confidence: Of the verdict.
            margin: Of the verdict.
        """
        wanted = {"confidence": confidence, "margin": margin}
        named = set(getattr(self.module, "GOAL", ())) == set(wanted)
        return named and all(getattr(self.params, name) == value for name, value in wanted.items())

    def start(self, arms: int, horizon: int | None = None) -> State:
        """Create the state before the first duel.

        Args:
            arms: The number of arms.
            horizon: The number of duels, if it is known.

        Raises:
            InvalidInput: If the policy needs a horizon and there is none.
            PolicyError: If the policy's `init` fails.
        """
        if self.needs_horizon and not horizon:
            raise InvalidInput(f"policy {self} needs a horizon: its choices depend on how many duels there will be")
        try:
            return self.module.init(arms, horizon or 0, self.params)
        except DuelsError:
            raise
        except Exception as error:
            raise PolicyError(f"init of policy {self} failed: {type(error).__name__}: {error}") from error

    def kernel(self, name: str, otherwise: Any = None) -> Any:
        """Return an optional function of the contract, or `otherwise` if the policy does not define it."""
        return getattr(self.module, name, otherwise)


PolicyLike = str | Policy | ModuleType | SimpleNamespace | type  # a name, a file, a policy, a module or a namespace


def load_policy(policy: PolicyLike, /, **parameters: specs.Value) -> Policy:
    """Find a policy.

    Args:
        policy: A name (`"rucb"`, `"btm:gamma=2"`), a Python file (`"./mine.py:c=1"`), or a module of your own.
        **parameters: More parameters. They override those in the name.

    Raises:
        UnknownName: If there is no such policy or parameter.
        InvalidInput: If a parameter is wrong, or the module does not follow the contract.

    Example:
        >>> policy("rucb", alpha=0.6)
        Policy('rucb:alpha=0.6')
    """
    if isinstance(policy, Policy):
        if not parameters:
            return policy
        return _with(policy.name, policy.module, policy.params._asdict() | parameters, policy.source)
    if policy is None or isinstance(policy, list | tuple | set | dict):
        raise InvalidInput(f"{policy!r} is not a policy: expected one name such as 'rucb', a Python file or a module")
    if not isinstance(policy, str):
        name = getattr(policy, "__name__", type(policy).__name__).rpartition(".")[2]
        return _with(name, policy, parameters, None)
    name, given = specs.split_spec(policy, "policy")
    if name.endswith(".py"):
        stem = Path(name).stem
        called = f"{stem}.py" if stem in BUILT_IN else stem  # distinct from the built-in policy of that name
        return _with(called, _from_file(name), given | parameters, str(Path(name).resolve()))
    if "," in name:
        raise InvalidInput(f"{name!r} is not one policy: name them one by one (on the command line: -p a -p b)")
    if name not in BUILT_IN:
        raise UnknownName("policy", name, BUILT_IN, "duels experiment policies")
    return _with(name, importlib.import_module(f".{name}", __name__), given | parameters, name)


def display_name(spec: str, names: Mapping[str, str] | None = None) -> str:
    """Return a policy's name as papers print it: its module's `NAME`, and the parameters in the spec.

    Args:
        spec: The policy's name, with parameters or without.
        names: The `NAME` of policies that are not built in; without one, a name stays as it is.

    Example:
        >>> display_name("rucb:alpha=0.6"), display_name("dts_plus"), display_name("mine", {"mine": "Ours"})
        ('RUCB (α = 0.6)', 'D-TS⁺', 'Ours')
    """
    try:
        name, given = specs.split_spec(spec, "policy")
    except InvalidInput:
        return spec
    if names and name in names:
        name = names[name]
    elif name in BUILT_IN:
        name = importlib.import_module(f".{name}", __name__).NAME
    shown = [
        display_name(value, names) if key == "policy" else f"{GREEK.get(key, key)} = {value}"
        for key, value in given.items()
    ]
    return f"{name} ({', '.join(shown)})" if shown else name


def _restore_policy(source: str, parameters: dict[str, specs.Value]) -> Policy:
    if source in BUILT_IN or source.endswith(".py"):
        return load_policy(source, **parameters)
    return load_policy(importlib.import_module(source), **parameters)


def defaults(module: Any) -> dict[str, specs.Value]:
    """Return the parameters of a policy's module and their defaults."""
    return dict(module.Params._field_defaults)


def _with(name: str, module: Any, given: Mapping[str, specs.Value], source: str | None) -> Policy:
    if hasattr(module, "wrap"):
        module = module.wrap(given)
    missing = [part for part in REQUIRED if not hasattr(module, part)]
    if missing:
        raise InvalidInput(f"policy {name!r} has no {', '.join(missing)}: expected a module with {', '.join(REQUIRED)}")
    if not hasattr(module.Params, "_field_defaults"):
        raise InvalidInput(
            f"Params of policy {name!r} is not a NamedTuple: expected `class Params(NamedTuple)` with defaults"
        )
    for kernel, arguments in ARGUMENTS.items():
        _check_arguments(name, kernel, getattr(module, kernel, None), arguments)
    undefaulted = set(module.Params._fields) - set(module.Params._field_defaults)
    if undefaulted:
        raise InvalidInput(f"Params of policy {name!r} needs a default for {', '.join(sorted(undefaulted))}")
    params = module.Params(**specs.fill(name, given, defaults(module), "duels experiment policies"))
    if hasattr(module, "check"):
        module.check(params)
    return Policy(name, module, params, source)


def _check_arguments(name: str, kernel: str, function: Callable[..., object] | None, arguments: str) -> None:
    if function is None:
        return
    try:
        inspect.signature(function).bind(*arguments.split(", "))
    except TypeError:
        taken = ", ".join(inspect.signature(function).parameters)
        raise InvalidInput(f"{kernel} of policy {name!r} takes ({taken}), expected ({arguments})") from None


class _Uncached(importlib.machinery.SourceFileLoader):
    """Reads a file each time: bytecode would be taken for new if a change keeps the size within a second."""

    def path_stats(self, path: str) -> Any:
        raise OSError("no bytecode is kept")


def _from_file(path: str) -> ModuleType:
    if not Path(path).is_file():
        raise InvalidInput(f"policy file {path!r} does not exist: expected a Python file that follows the contract")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path, loader=_Uncached(Path(path).stem, path))
    if spec is None or spec.loader is None:
        raise InvalidInput(f"policy file {path!r} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidInput(f"policy file {path!r} cannot be imported: {type(error).__name__}: {error}") from error
    return module
