"""Policies on continuous spaces, by name: one file each. Their contract is in the docstring of `duels.continuous`."""

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ... import specs
from ...checks import check_int
from ...errors import InvalidInput, UnknownName
from ..model.laplace import find_mode
from ..model.search import around, sobol
from ..spaces import Setting, Space
from .context import History, Memory, Situation

BUILT_IN = ("eubo", "gp_rucb", "max_min_lcb", "double_thompson", "kernel_self_sparring", "dbgd", "random")
DEFAULT = "eubo"
INITIAL_PER_PARAMETER, MOST_INITIAL = 4, 20
DESIGN = 10  # 2^DESIGN points of the Sobol' sequence of initial duels
STARTING, ASKING, ADVISING = 3, 4, 5  # spawn keys of the random streams; 0 to 2 are those of simulations
TRIES = 20  # to find a setting that differs from another one
Seed = int | tuple[int, ...]
Asked = History | Iterable[tuple[Mapping[str, object], Mapping[str, object], float | None]]


@dataclass(frozen=True)
class Policy:
    """A policy on continuous spaces with its parameters, as `load_policy("gp_rucb:beta=3")` returns it.

    Attributes:
        name: The policy's name, without parameters.
        module: The module that follows the contract.
        params: An instance of the module's `Params`.
    """

    name: str
    module: Any
    params: Any

    def __reduce__(self) -> tuple[object, ...]:
        return load_policy, (str(self),)

    def __repr__(self) -> str:
        return f"Policy({str(self)!r})"

    def __str__(self) -> str:
        return specs.join(self.name, self.params._asdict(), self.module.Params._field_defaults)

    @property
    def paper(self) -> str:
        """The paper that describes the policy."""
        return str(self.module.PAPER)

    @property
    def recommends(self) -> bool:
        """Whether it recommends by a model, or a rule, of its own."""
        return hasattr(self.module, "recommend")

    def situation(self, space: Space, history: History, rng: np.random.Generator, memory: Memory | None) -> Situation:
        """Return what the policy is told, with its model."""
        return Situation(space, history, rng, memory, getattr(self.module, "APPROXIMATE", find_mode))

    def initial(self, space: Space) -> int:
        """Return the number of duels of Sobol' points before the policy chooses."""
        if not getattr(self.module, "MODEL", True):
            return 0
        given: int = self.params.initial
        return given or min(INITIAL_PER_PARAMETER * len(space), MOST_INITIAL)

    def ask(
        self, space: Space, duels: Asked, *, seed: Seed, number: int | None = None, memory: Memory | None = None
    ) -> tuple[Setting, Setting]:
        """Choose the next duel. The same arguments give the same duel.

        Args:
            space: The space.
            duels: All duels so far, open ones included, as a `History` or as left and right settings with the outcome:
                1 if left won, 0 if right won, ½ for a tie, None while it is open.
            seed: The seed of the study.
            number: How many duels were asked before, skipped and undone ones included; by default the number of duels.
                It selects the random numbers, so a duel that was skipped is not asked again.
            memory: Fits to reuse: it saves time and changes nothing.

        Returns:
            Two different settings.

        Raises:
            InvalidInput: If a duel does not belong to the space.
        """
        history = duels if isinstance(duels, History) else History.of(space, duels)
        number = check_int("number", len(history.outcome) if number is None else number, 0)
        rng = generator(seed, ASKING, number)
        if len(history.outcome) < self.initial(space):
            design = sobol(len(space), DESIGN, generator(seed, STARTING))
            place = 2 * number % len(design)
            left, right = space.snap(design[place : place + 2])
        else:
            left, right = self.module.choose(self.situation(space, history, rng, memory), self.params)
        return decode_pair(space, left, right, rng)

    def recommend(self, space: Space, duels: Asked, *, seed: Seed, memory: Memory | None = None) -> Setting:
        """Return the setting that the duels so far recommend: the one with the largest posterior mean.

        A policy without a model returns its own. Open duels do not count.

        Args:
            space: The space.
            duels: As for `ask`.
            seed: The seed of the study.
            memory: As for `ask`.
        """
        history = duels if isinstance(duels, History) else History.of(space, duels)
        known = History(*history.answered)
        if not len(known.outcome):
            return space.decode(np.full(len(space), 0.5))
        situation = self.situation(space, known, generator(seed, ADVISING, len(known.outcome)), memory)
        own = getattr(self.module, "recommend", None)
        return space.decode(situation.best if own is None else own(situation, self.params))


def load_policy(spec: str | Policy, /, **parameters: specs.Value) -> Policy:
    """Find a policy on continuous spaces.

    Args:
        spec: A name, with or without parameters: `"gp_rucb"`, `"gp_rucb:beta=3"`.
        **parameters: More parameters. They override those in the name.

    Raises:
        UnknownName: If there is no such policy or parameter.
        InvalidInput: If a parameter is wrong.

    Example:
        >>> policy("gp_rucb", beta=3)
        Policy('gp_rucb:beta=3')
    """
    if isinstance(spec, Policy):
        spec = str(spec)
    if not isinstance(spec, str):
        raise InvalidInput(f"{spec!r} is not a policy: expected a name such as {DEFAULT!r}")
    name, given = specs.split_spec(spec, "policy")
    if name not in BUILT_IN:
        raise UnknownName("policy for continuous spaces", name, BUILT_IN)
    module = importlib.import_module(f".{name}", __name__)
    filled = specs.fill(name, {**given, **parameters}, module.Params._field_defaults, f"docs/continuous/{name}.md")
    params = module.Params(**filled)
    check_int(f"initial of {name}", params.initial, 0, 10_000)
    if hasattr(module, "check"):
        module.check(params)
    return Policy(name, module, params)


def generator(seed: Seed, *key: int) -> np.random.Generator:
    """Return one of the random streams of a seed."""
    entropy = list(seed) if isinstance(seed, tuple) else check_int("seed", seed, 0)
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=key))


def decode_pair(space: Space, left: np.ndarray, right: np.ndarray, rng: np.random.Generator) -> tuple[Setting, Setting]:
    """Return the settings at two points; if they are the same, the second one is a random one near it."""
    first = space.decode(left)
    return first, _different(space, first, left, right, rng)


def _different(space: Space, first: Setting, left: np.ndarray, right: np.ndarray, rng: np.random.Generator) -> Setting:
    """The setting at `right`, or a random one near it if that is the first setting."""
    second = space.decode(right)
    for _ in range(TRIES):
        if second != first:
            return second
        for point in around(left, space, rng):
            second = space.decode(point)
            if second != first:
                return second
    return next(other for u in rng.random((1000, len(space))) if (other := space.decode(u)) != first)
