"""The policies by name. A policy is a module that obeys the contract; its parameters are part of its name.

A module offers `Params` (a NamedTuple with defaults), `init`, `select`, `update` and `recommend`; where it can, `skip`,
`bounds`, `explored` and `check`; and says `NEEDS_HORIZON` and `PAPER`. See docs/policies.md.
"""

import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from .. import specs
from ..errors import InvalidInput, UnknownName

BUILT_IN = ("rucb", "savage", "btm", "interleaved_filter", "random")
REQUIRED = ("Params", "init", "select", "update", "recommend")


@dataclass(frozen=True)
class Policy:
    """A policy and its parameters: what `duels.policy("rucb:alpha=0.6")` gives."""

    name: str
    module: Any  # the namespace that holds the contract
    params: Any  # an instance of its Params

    def __str__(self) -> str:
        return specs.join(self.name, self.params._asdict(), defaults(self.module))

    @property
    def needs_horizon(self) -> bool:
        return bool(getattr(self.module, "NEEDS_HORIZON", False))

    @property
    def paper(self) -> str:
        return str(getattr(self.module, "PAPER", ""))

    def start(self, arms: int, horizon: int | None = None) -> Any:
        """The state before the first duel."""
        if self.needs_horizon and not horizon:
            raise InvalidInput(f"policy {self} needs a horizon: its choices depend on how many duels there will be")
        return self.module.init(arms, horizon or 0, self.params)

    def kernel(self, name: str, otherwise: Any = None) -> Any:
        """A kernel of the contract that the policy may do without."""
        return getattr(self.module, name, otherwise)


def policy(policy: Any, **parameters: Any) -> Policy:
    """The policy of that name (`"rucb"`, `"btm:gamma=2"`), of a file (`"./mine.py:c=1"`) or of a module of yours."""
    if isinstance(policy, Policy):
        return _with(policy.name, policy.module, policy.params._asdict() | parameters)
    if not isinstance(policy, str):
        name = getattr(policy, "__name__", type(policy).__name__).rpartition(".")[2]
        return _with(name, policy, parameters)
    name, given = specs.split(policy, "policy")
    if name.endswith(".py"):
        return _with(Path(name).stem, _from_file(name), given | parameters)
    if name not in BUILT_IN:
        raise UnknownName("policy", name, BUILT_IN, "duels policies")
    return _with(name, importlib.import_module(f".{name}", __name__), given | parameters)


def defaults(module: Any) -> dict[str, Any]:
    """A policy's parameters and their defaults."""
    return dict(module.Params._field_defaults)


def _with(name: str, module: Any, given: Mapping[str, Any]) -> Policy:
    missing = [part for part in REQUIRED if not hasattr(module, part)]
    if missing:
        raise InvalidInput(f"policy {name!r} has no {', '.join(missing)}: expected a module with {', '.join(REQUIRED)}")
    undefaulted = set(module.Params._fields) - set(module.Params._field_defaults)
    if undefaulted:
        raise InvalidInput(f"Params of policy {name!r} needs a default for {', '.join(sorted(undefaulted))}")
    params = module.Params(**specs.fill(name, given, defaults(module), "duels policies"))
    if hasattr(module, "check"):
        module.check(params)
    return Policy(name, module, params)


def _from_file(path: str) -> ModuleType:
    if not Path(path).is_file():
        raise InvalidInput(f"policy file {path!r} does not exist: expected a Python file that obeys the contract")
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise InvalidInput(f"policy file {path!r} is not a Python module")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidInput(f"policy file {path!r} cannot be imported: {type(error).__name__}: {error}") from error
    return module
