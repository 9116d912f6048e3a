"""Continuous arms: which setting of some parameters do people prefer, asked two settings at a time?

Spaces of parameters, the preference model (a Gaussian process that learns from duels), policies on it and their
simulation belong here. Studies with people and machines are elsewhere: they use this contract.

**The contract.** A policy is a pure function. `policy(spec).ask(space, duels, seed=, number=)` returns two settings
that depend on nothing else:

- `space`: a `Space`.
- `duels`: all duels so far in a fixed order, as settings with the outcome: 1 if left won, 0 if right won, ½ for a tie,
  None while the duel is open. Open duels are treated as ties, so that the next one is asked elsewhere. A duel that was
  undone or skipped is left out.
- `seed`: the seed of the study; or a tuple, such as that of a simulation, (seed, run).
- `number`: how many duels were asked before, those included that were undone or skipped. It selects the random numbers.
- `memory`: an optional `Memory` of fits. It saves time and changes no digit: what it keeps is found by the data it was
  computed from. It holds a few kilobytes to a few megabytes, is not safe for several threads, and may be thrown away.

So a study that stores its space, its seed and its log can ask again what it asked before, on any machine with the same
versions of numpy and scipy. `policy(spec).recommend(space, duels, seed=)` is a pure function too.

A policy's module has `NAME`, `PAPER`, `Params` (a NamedTuple with defaults; all have `initial`, the number of duels of
Sobol' points before the policy chooses), `choose(situation, params)`, which returns two points of the unit cube, and
if it can be wrong, `check(params)`. A `Situation` has `space`, `history`, `rng`, `model`, `candidates`, `moments` and
`best`. `recommend(situation, params)` replaces the maximizer of the posterior mean, and `MODEL = False` says that
there is no need for initial duels.
"""

from typing import TYPE_CHECKING

from .. import _lazy_names

_HOMES = {
    "Space": "spaces",
    "Number": "spaces",
    "Category": "spaces",
    "load_policy": "policies",
    "Policy": "policies",
    "History": "policies.context",
    "Memory": "policies.context",
    "Situation": "policies.context",
    "Model": "model.model",
    "Answers": "model.model",
    "Hyperparameters": "model.model",
    "fit_hyperparameters": "model.model",
    "TuningStudy": "tuning.study",
    "TuningDuel": "tuning.study",
    "Best": "tuning.result",
    "TuningResult": "tuning.judged",
    "tune": "tuning.judged",
    "tune_async": "tuning.judged",
    "find_function": "functions",
    "list_functions": "functions",
}

__all__ = [*_HOMES]

if TYPE_CHECKING:
    from .functions import find_function, list_functions
    from .model.model import Answers, Hyperparameters, Model, fit_hyperparameters
    from .policies import Policy, load_policy
    from .policies.context import History, Memory, Situation
    from .spaces import Category, Number, Space
    from .tuning.judged import TuningResult, tune, tune_async
    from .tuning.log import TuningDuel
    from .tuning.result import Best
    from .tuning.study import TuningStudy

__getattr__, __dir__ = _lazy_names(__name__, _HOMES)
