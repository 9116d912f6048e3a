"""The one loop that plays a policy, for every policy and every world, interpreted or compiled.

`play` calls its kernels by global names; `bind` puts one policy's kernels and one world's outcome in their places.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from . import compiling
from .errors import InvalidInput
from .policies import Policy
from .policies.kernels import FOREVER as FOREVER

LATEST = 10**15  # horizons up to here keep all arithmetic on times exact


# A policy's kernels and a world's outcome, in whose places `bind` puts them.
select: Any = None
update: Any = None
skip: Any = None
recommend: Any = None
outcome: Any = None


def play(state, params, world, tally, t, until, stride, budget, coin, luck, adviser):
    """Play steps t … until, at most `budget` of them one by one; the next time, and the arm recommended at the end.

    `tally[i, j]` counts the duels i won over j (a tie a half to both), `tally[i, i]` the duels of i with itself.
    """
    while t <= until and budget > 0:
        budget -= 1
        i, j = select(state, params, t, coin)
        later = t if i != j else skip(state, params, t)
        if later > t:  # a self-duel that teaches nothing, and the same one until `later`
            later = min(later, t + stride, until + 1)
            tally[i, i] += later - t
            t = later
            continue
        won = outcome(world, i, j, luck)
        update(state, params, t, i, j, won)
        if i == j:
            tally[i, i] += 1.0
        else:
            tally[i, j] += won
            tally[j, i] += 1.0 - won
        t += 1
    return t, recommend(state, adviser) if t > until else -1


def draw_from_matrix(world, i, j, luck):
    """The outcome kernel of a preference matrix: whether i beats j, by chance P[i, j]."""
    return 1.0 if luck.random() < world[i, j] else 0.0


def one_step(state, params, t):
    """The `skip` of a policy that has none."""
    return t + 1


def streams(seed: int, run: int) -> tuple[np.random.Generator, np.random.Generator]:
    """A run's two sources of chance: the policy's coin and the world's luck."""
    coin, luck = np.random.SeedSequence([seed, run]).spawn(2)
    return np.random.default_rng(coin), np.random.default_rng(luck)


def adviser(seed: int, run: int, t: int) -> np.random.Generator:
    """The chance that breaks ties in the recommendation at time t; the same whichever other times are looked at."""
    return np.random.default_rng(np.random.SeedSequence([seed, run], spawn_key=(2, t)))


def bind(
    policy: Policy, outcome: Callable = draw_from_matrix, compiled: bool = True, counted: bool = False
) -> Callable:
    """`play` with this policy's kernels and this outcome in it; kernels that make arrays must be `counted`."""
    module = policy.module
    kernels = {
        "select": module.select,
        "update": module.update,
        "recommend": module.recommend,
        "skip": policy.kernel("skip", one_step),
        "outcome": outcome,
    }
    if not compiled:
        return compiling.rebound(play, globals() | kernels)
    return compiling.compile_with(play, kernels, name=f"play_{policy.name}", counted=counted)


def ready(policy: Policy, arms: int, horizon: int, world: Any, outcome: Callable = draw_from_matrix) -> Callable:
    """`bind`, with the compilation done: compiling must not happen in a thread, nor be measured as play."""
    from numba.core.errors import NumbaError

    coin, luck = streams(0, 0)
    for counted in (False, True):
        bound = bind(policy, outcome, counted=counted)
        try:
            state = policy.start(arms, horizon)
            bound(state, policy.params, world, np.zeros((arms, arms)), 1, 0, 1, 0, coin, luck, coin)
            return bound
        except NumbaError as error:
            complaint = "\n".join(line for line in str(error).splitlines() if line.strip())[:2000]
    raise InvalidInput(
        f"policy {policy.name!r} cannot be compiled by numba; run it with compiled=False, or mend this:\n{complaint}"
    )
