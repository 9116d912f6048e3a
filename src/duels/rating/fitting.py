"""The maximum of a model's likelihood, by Newton's method, and how uncertain it is."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from ..errors import InvalidInput
from . import bradley_terry
from .clusters import Clusters, Sums, count_by_cluster, sum_slopes
from .counts import TIED, Bools, Cells, Floats, main_group, reaches, with_average_arm

if TYPE_CHECKING:
    from scipy.sparse import csr_array

TOLERANCE = 1e-9  # of the last step, in logits
NO_GAIN = 1e-23  # of the likelihood, relatively: where counts are very uneven, rounding alone makes larger steps
ROUND_TOLERANCE = 1e-6  # the same in rounds of the bootstrap, and where a step changes the likelihood by rounding only
EPSILON = float(np.finfo(float).eps)
MOST_STEPS = 100
FEW = 60  # parameters that elimination finds quicker than conjugate gradients
SOLVED = 1e-10  # what conjugate gradients leave of the right side
MOST_UNEVEN = 1e14  # the condition number at which an inverse is rounding only
CHORD_STEPS = 25  # after these, a round of the bootstrap is fitted by itself
MOST_NUMBERS = 4_000_000  # counts that the bootstrap holds at once

Draw = Callable[[int, np.random.Generator], Floats]  # so many rounds → (3, m, rounds) counts


class Model(Protocol):
    """A model of votes: the modules `bradley_terry` and `rao_kupper`. Its parameters are θ of K arms, then others."""

    def has_maximum(self, cells: Cells) -> bool: ...
    def start(self, cells: Cells) -> Floats: ...
    def value(self, cells: Cells, x: Floats) -> float: ...
    def slopes(self, cells: Cells, x: Floats) -> tuple[Floats, Floats]: ...
    def curvature(self, cells: Cells, x: Floats) -> tuple[Floats, Floats, Floats]: ...
    def vote_slopes(self, cells: Cells, x: Floats) -> tuple[Floats, Floats]: ...
    def chance(self, delta: Floats, x: Floats, arms: int) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Fit:
    """A fitted model.

    Attributes:
        model: The model.
        votes: What it was fitted to …
        cells: … and the same with the average arm, if it was needed.
        solution: The parameters with the largest likelihood, θ of the average arm included.
        reference: (K,) bool: The arms whose mean θ is 0 in `x`.
    """

    model: Model
    votes: Cells
    cells: Cells
    solution: Floats
    reference: Bools

    @cached_property
    def reach(self) -> Bools:
        """(K, K) bool: See `reaches`."""
        found = reaches(self.votes)
        # If only Rao and Kupper's η has no limit, no difference of θ has one.
        return np.eye(self.arms, dtype=bool) if self.regularized and found.all() else found

    @property
    def arms(self) -> int:
        """K, without the average arm."""
        return self.votes.arms

    @property
    def regularized(self) -> bool:
        """Whether there is an average arm."""
        return self.cells.arms > self.arms

    @property
    def virtual(self) -> int:
        """How many cells, the last ones, are votes against the average arm."""
        return self.arms if self.regularized else 0

    @property
    def x(self) -> Floats:
        """(K + extra,) float64: θ of the K arms, then the model's other parameters."""
        return center(self.solution, self.reference, self.cells.arms)


def fit(model: Model, cells: Cells, anchor: int | None = None) -> Fit:
    """Find the ratings with the largest likelihood.

    If there is no finite maximum, every arm gets half a win and half a loss against an average arm. That is so if some
    arm has not beaten or tied every other, itself or through a chain of arms.

    Args:
        model: The model. Without any tie, that of Rao and Kupper is Bradley–Terry, which is used then.
        cells: The votes.
        anchor: The arm whose θ is 0. By default the mean of the largest group of arms is 0 in which every arm has
            beaten every other, itself or through a chain; that is usually all arms.
    """
    model = _simplest(model, cells)
    used = cells if model.has_maximum(cells) else with_average_arm(cells)
    reference = main_group(cells) if anchor is None else np.arange(cells.arms) == anchor
    return Fit(model, cells, used, maximize(model, used, model.start(used)), reference)


def maximize(model: Model, cells: Cells, x: Floats, precision: float = 0.0) -> Floats:
    """Return the parameters with the largest likelihood, from a start, by Newton's method with halved steps.

    Args:
        model: The model.
        cells: The votes.
        x: The start, with a mean θ of 0.
        precision: Of a normal prior of each θ, with mean 0; the parameters are then the mode of the posterior.
    """

    def value(x: Floats) -> float:
        prior = 0.5 * precision * float(x[: cells.arms] @ x[: cells.arms]) if precision else 0.0
        return model.value(cells, x) - prior

    now = value(x)
    for _ in range(MOST_STEPS):
        slope = gradient(model, cells, x)
        slope[: cells.arms] -= precision * x[: cells.arms]
        step = _step(model, cells, x, slope, precision)
        size = 1.0
        while not (after := value(x + size * step)) >= now - 1e-12 * abs(now):
            size /= 2
        x, now = x + size * step, after
        longest, gain = np.abs(step).max(), slope @ step
        is_rounding = longest < ROUND_TOLERANCE and gain <= EPSILON * abs(now)
        if size == 1.0 and (longest < TOLERANCE or is_rounding or gain <= NO_GAIN * abs(now)):
            return x
    raise InvalidInput(
        "the ratings cannot be computed: the counts of the pairs are so uneven that rounding hides the small ones; "
        "leave out pairs with few votes, or arms that nearly always win or lose"
    )


def _step(model: Model, cells: Cells, x: Floats, slope: Floats, precision: float) -> Floats:
    """Newton's step, with a mean θ of 0."""
    parts, arms = model.curvature(cells, x), cells.arms
    theta = np.arange(len(slope)) < arms
    prior = np.where(theta, precision, 0.0)
    if len(slope) <= FEW:  # elimination is quicker
        matrix = _fix_mean(_assemble(cells, *parts) + np.diag(prior), arms)
        try:
            return np.asarray(np.linalg.solve(matrix, slope))
        except np.linalg.LinAlgError:
            return np.asarray(np.linalg.lstsq(matrix, slope)[0])
    right = slope - theta * slope[:arms].mean()  # a mean that is not 0 is rounding
    step = conjugate_gradients(_sparse(cells, *parts, prior), right)
    if step is not None:
        return np.asarray(step - theta * step[:arms].mean())
    return np.asarray(np.linalg.lstsq(_fix_mean(_assemble(cells, *parts) + np.diag(prior), arms), slope)[0])


def conjugate_gradients(matrix: "csr_array", right: Floats) -> Floats | None:
    """Solve a symmetric system by conjugate gradients; None if they do not converge.

    A dozen of steps are enough for most tables. BLAS would use threads, which wait for one another on a busy machine.

    Args:
        matrix: (n, n): Its eigenvalues are 0 or more, and `right` has no part in the directions of those that are 0.
        right: (n,): The right side.
    """
    diagonal = matrix.diagonal()
    if not diagonal.all():
        return None
    scale = 1 / diagonal
    found, rest = np.zeros(len(right)), right.copy()
    direction = scaled = scale * rest
    size = rest @ scaled
    enough = SOLVED * np.abs(right).max()
    for _ in range(10 * len(right)):
        if np.abs(rest).max() <= enough:
            return found
        image = matrix @ direction
        if not (curve := direction @ image) > 0:
            return None
        length = size / curve
        found += length * direction
        rest -= length * image
        scaled = scale * rest
        before, size = size, rest @ scaled
        direction = scaled + size / before * direction
    return None


def gradient(model: Model, cells: Cells, x: Floats) -> Floats:
    """Return (K + extra,) or (K + extra, rounds): the derivatives of the likelihood."""
    slope, extra = model.slopes(cells, x)
    first, second, arms = cells.first, cells.second, cells.arms
    if slope.ndim == 1:
        return np.concatenate([np.bincount(first, slope, arms) - np.bincount(second, slope, arms), extra])
    from scipy.sparse import csr_array

    m = len(first)
    ends, sides = np.append(first, second), np.repeat([1.0, -1.0], m)
    incidence = csr_array((sides, (ends, np.tile(np.arange(m), 2))), shape=(arms, m))
    return np.concatenate([incidence @ slope, extra])


def information(model: Model, cells: Cells, x: Floats) -> Floats:
    """Return (K + extra, K + extra): minus the second derivatives of the likelihood. Adding 1 to all θ is free."""
    return _assemble(cells, *model.curvature(cells, x))


class Spread(NamedTuple):
    """How uncertain the parameters of a fit are.

    Attributes:
        covariance: (K + extra, K + extra) float64: Of `Fit.x`.
        effective: (K + extra,) float64: The effective number of clusters that each was estimated from; ∞ for votes that
            do not depend on one another.
    """

    covariance: Floats
    effective: Floats


def sandwich(fitted: Fit, clusters: Clusters | None = None) -> Spread:
    """Estimate the covariance of `fitted.x`, which holds even if the model is wrong (White 1982).

    Args:
        fitted: The fit.
        clusters: Which of its votes depend on one another.

    Raises:
        LinAlgError: If the counts are so uneven that rounding hides the small ones.
    """
    whole, arms, x = fitted.cells, fitted.arms, fitted.solution
    matrix = _fix_mean(information(fitted.model, whole, x), whole.arms)
    inverse = np.linalg.inv(matrix)
    if not np.abs(matrix).max() * np.abs(inverse).max() < MOST_UNEVEN:
        raise np.linalg.LinAlgError("singular")
    products, effective = _slope_products(fitted, clusters)
    spread = inverse @ products @ inverse
    kept = np.r_[0:arms, whole.arms : len(spread)]
    shift = np.eye(len(kept))
    shift[:arms, :arms] -= fitted.reference / fitted.reference.sum()
    return Spread(np.asarray(shift @ spread[np.ix_(kept, kept)] @ shift.T), effective[kept])


def _slope_products(fitted: Fit, clusters: Clusters | None) -> Sums:
    """The sums of products of slopes: of single votes, or of clusters and of the votes against the average arm."""
    cells = fitted.cells
    by_delta, by_extra = fitted.model.vote_slopes(cells, fitted.solution)
    counts = cells.counts
    if clusters is not None:
        counts = counts.copy()
        counts[:, : counts.shape[1] - fitted.virtual] = 0
    square = np.sum(counts * by_delta**2, axis=0)
    cross = np.einsum("km,kmf->mf", counts * by_delta, by_extra)
    products = _assemble(cells, square, cross, np.einsum("km,kmf,kmg->fg", counts, by_extra, by_extra))
    if clusters is None:
        return Sums(products, np.full(len(products), np.inf))
    found = sum_slopes(clusters, cells, by_delta, by_extra)
    return Sums(products + found.products, found.effective)


def bootstrap(fitted: Fit, rounds: int, rng: np.random.Generator, clusters: Clusters | None = None) -> Floats:
    """Return (K + extra, rounds): the parameters fitted to votes, or clusters, drawn at random from the given ones."""
    whole = max(fitted.cells.counts[0].size, 0 if clusters is None else clusters.size)
    at_once = max(1, min(rounds, MOST_NUMBERS // max(whole, 1)))
    if clusters is None:
        draw = partial(_draw_votes, fitted.cells, fitted.virtual)
    else:
        draw = partial(_draw_clusters, fitted.cells, count_by_cluster(clusters, fitted.cells.counts.shape[1]))
    parts = [_rounds(fitted, min(at_once, rounds - begin), rng, draw) for begin in range(0, rounds, at_once)]
    return np.concatenate(parts, axis=1)


def center(x: Floats, reference: Bools, arms: int) -> Floats:
    """Return x without the average arm, if there is one, and with 0 as the mean θ of the reference."""
    theta = x[: len(reference)]
    return np.concatenate([theta - theta[reference].mean(axis=0), x[arms:]])


def _rounds(fitted: Fit, rounds: int, rng: np.random.Generator, draw: Draw) -> Floats:
    """Rounds together: from the fit, by steps with the curvature of all votes, which is close to that of each round."""
    from scipy.linalg import cho_factor, cho_solve

    cells, model = fitted.cells, fitted.model
    drawn = cells._replace(counts=draw(rounds, rng))
    begin = fitted.solution
    factor = cho_factor(_fix_mean(information(model, cells, begin), cells.arms))
    x = np.repeat(begin[:, None], rounds, axis=1)
    open_rounds = np.arange(rounds)
    for _ in range(CHORD_STEPS):
        part = drawn._replace(counts=drawn.counts[..., open_rounds]) if len(open_rounds) < rounds else drawn
        step = cho_solve(factor, gradient(model, part, x[:, open_rounds]))
        x[:, open_rounds] += step
        open_rounds = open_rounds[~(np.abs(step).max(axis=0) < ROUND_TOLERANCE)]
        if not len(open_rounds):
            break
    found = center(x, fitted.reference, cells.arms)
    for k in open_rounds:
        found[:, k] = _by_itself(fitted, drawn._replace(counts=drawn.counts[..., k]))
    return found


def _by_itself(fitted: Fit, cells: Cells) -> Floats:
    """One round, with the average arm if it is needed."""
    used = cells if fitted.model.has_maximum(cells) else with_average_arm(cells)
    x = maximize(fitted.model, used, fitted.model.start(used))
    return center(x, fitted.reference, used.arms)


def _draw_votes(cells: Cells, virtual: int, rounds: int, rng: np.random.Generator) -> Floats:
    """(3, m, rounds) counts: each vote is counted a Poisson(1) number of times; those against the average arm, once.

    The number of votes of a round is random then, on which the fit does not depend.
    """
    counts = cells.counts[:, : cells.counts.shape[1] - virtual]
    kinds = np.flatnonzero(counts)
    drawn = np.zeros((counts.size, rounds))
    drawn[kinds] = rng.poisson(counts.ravel()[kinds, None], (len(kinds), rounds))
    tables = drawn.reshape(*counts.shape, rounds)
    kept = np.repeat(cells.counts[:, counts.shape[1] :, None], rounds, axis=2)
    return np.concatenate([tables, kept], axis=1) if virtual else tables


def _draw_clusters(cells: Cells, votes: "csr_array", rounds: int, rng: np.random.Generator) -> Floats:
    """(3, m, rounds) counts: as `_draw_votes`, but all votes of a cluster are counted equally often."""
    weights = rng.poisson(1, (votes.shape[1], rounds)).astype(np.float64)
    drawn = np.asarray(votes @ weights).reshape(*cells.counts.shape, rounds)
    whole = np.asarray(votes.sum(axis=1)).reshape(cells.counts.shape)
    return np.asarray(drawn + (cells.counts - whole)[..., None])  # those against the average arm belong to no cluster


def _simplest(model: Model, cells: Cells) -> Model:
    return model if cells.counts[TIED].any() else bradley_terry


def _assemble(cells: Cells, pairs: Floats, cross: Floats, extra: Floats) -> Floats:
    """The (K + extra, K + extra) matrix of sums over cells, of which each concerns θ of two arms and the others."""
    arms = cells.arms
    matrix = np.zeros((arms + len(extra), arms + len(extra)))
    flat = np.bincount(cells.first * arms + cells.second, pairs, arms**2).reshape(arms, arms)
    both = flat + flat.T
    matrix[:arms, :arms] = np.diag(both.sum(axis=1)) - both
    for k in range(len(extra)):
        column = np.bincount(cells.first, cross[:, k], arms) - np.bincount(cells.second, cross[:, k], arms)
        matrix[:arms, arms + k] = matrix[arms + k, :arms] = column
    matrix[arms:, arms:] = extra
    return matrix


def _sparse(cells: Cells, pairs: Floats, cross: Floats, extra: Floats, diagonal: Floats) -> "csr_array":
    """As `_assemble`, with an addition to the diagonal, where only a few of all pairs of many arms have met."""
    from scipy.sparse import coo_array, csr_array

    if len(extra):
        return csr_array(_assemble(cells, pairs, cross, extra) + np.diag(diagonal))
    first, second, arms = cells.first, cells.second, cells.arms
    both = np.bincount(first, pairs, arms) + np.bincount(second, pairs, arms) + diagonal
    itself = np.arange(arms)
    rows, columns = np.concatenate([itself, first, second]), np.concatenate([itself, second, first])
    return coo_array((np.concatenate([both, -pairs, -pairs]), (rows, columns)), shape=(arms, arms)).tocsr()


def _fix_mean(matrix: Floats, arms: int) -> Floats:
    """The matrix with a cost for the mean θ, which is free otherwise; so it can be inverted."""
    matrix[:arms, :arms] += np.trace(matrix[:arms, :arms]) / arms**2
    return matrix
