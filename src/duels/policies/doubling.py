"""The doubling trick (Cesa-Bianchi & Lugosi 2006, section 2.3): a policy that needs a horizon, played without one.

Round k lasts from t = 2^k to 2^(k+1) − 1. Each round restarts the inner policy with horizon 2^k.

The kernels below call those of the inner policy by global names that are None here; `wrap` replaces these in copies of
them. The state has the inner policy's fields and three more, and the parameters are `policy` and those of the inner
policy, so the inner kernels can use both unchanged.
"""

import functools
import importlib
import types
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ..errors import InvalidInput

NAME = "Doubling"
PAPER = "Cesa-Bianchi, Lugosi: Prediction, Learning, and Games (2006), section 2.3: the doubling trick"
NEEDS_HORIZON = False
ASSUMES = "condorcet"
KERNELS = ("init", "restart", "select", "update", "recommend", "skip", "explored")
OWN = ("start", "end", "last")


class Params(NamedTuple):
    policy: str = "savage"


# Placeholders for the kernels of the inner policy, and for its state with the fields of OWN.
UNBOUND: Any = None
inner_init = inner_restart = inner_select = inner_update = inner_recommend = inner_skip = inner_explored = UNBOUND
Whole = UNBOUND


def init(arms, horizon, params):
    inner = inner_init(arms, 1, params)
    # start and end: (1,) int64, the first t of this round and of the next; last: (1,) int64, the final recommendation
    # of the previous round, −1 in the first round
    return Whole(*inner, start=np.full(1, 1), end=np.full(1, 2), last=np.full(1, -1))


def select(state, params, t, rng):
    while t >= state.end[0]:
        state.last[0] = inner_recommend(state, rng)
        state.start[0] = state.end[0]
        state.end[0] *= 2
        inner_restart(state, params, state.start[0])
    return inner_select(state, params, t - state.start[0] + 1, rng)


def update(state, params, t, i, j, outcome):
    inner_update(state, params, t - state.start[0] + 1, i, j, outcome)


def skip(state, params, t):
    before = state.start[0] - 1
    return min(before + inner_skip(state, params, t - before), state.end[0])


def recommend(state, rng):
    """What the round before recommended, until this round is certain."""
    if state.last[0] >= 0 and inner_explored(state) == 0:
        return state.last[0]
    return inner_recommend(state, rng)


def wrap(given: Mapping[str, object]) -> types.ModuleType:
    """Return the module that plays the policy named in the parameters, with a doubling horizon."""
    return _wrap_policy(str(given.get("policy", Params().policy)))


@functools.cache
def _wrap_policy(name: str) -> types.ModuleType:
    inner = _inner(name)
    space = globals() | {f"inner_{kernel}": getattr(inner, kernel) for kernel in KERNELS}
    space["Whole"] = _tuple(f"State_{name}", dict.fromkeys((*inner.State._fields, *OWN), object), {})
    played = types.ModuleType(__name__, __doc__)
    for kernel in (init, select, update, skip, recommend):
        setattr(played, kernel.__name__, types.FunctionType(kernel.__code__, space, kernel.__name__))
    own = Params._field_defaults | inner.Params._field_defaults
    played.__dict__.update(
        Params=_tuple(f"Params_{name}", Params.__annotations__ | inner.Params.__annotations__, own),
        check=inner.check,
        wrap=wrap,
        NAME=NAME,
        PAPER=PAPER,
        NEEDS_HORIZON=NEEDS_HORIZON,
        ASSUMES=inner.ASSUMES,
    )
    if hasattr(inner, "bounds"):
        played.__dict__["bounds"] = lambda state, params, t: inner.bounds(state, params, t - int(state.start[0]) + 1)
    return played


def _inner(name: str) -> types.ModuleType:
    from . import BUILT_IN

    modules = {one: importlib.import_module(f".{one}", __package__) for one in BUILT_IN if one != "doubling"}
    able = {one: module for one, module in modules.items() if hasattr(module, "restart")}
    if name not in able:
        raise InvalidInput(f"policy of doubling is {name!r}: expected one that can be restarted: {', '.join(able)}")
    return able[name]


def _tuple(name: str, fields: dict[str, type], defaults: dict[str, object]) -> Any:
    """A NamedTuple of this module, so that cached compiled code finds it by name."""
    made: Any = NamedTuple(name, list(fields.items()))  # type: ignore[misc]
    made.__module__ = __name__
    made.__new__.__defaults__ = tuple(defaults.values())
    made._field_defaults = defaults
    globals()[name] = made
    return made
