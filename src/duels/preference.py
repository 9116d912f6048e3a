"""Preference matrices: `P[i, j]` is the probability that arm i beats arm j.

The problem setting of Zoghi et al. (2014), section 2, and the assumptions that their appendix examines.
"""

import hashlib
import math
import operator
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, partial
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from .errors import InvalidInput, NoCondorcetWinner, UnknownName, shorten
from .files import html_table
from .orders import count_ordered_among_random, count_ordered_subsets, count_ordered_subsets_by_size

Arm = int | str
TOLERANCE = 1e-9  # how far P + Pᵀ may be from 1, and the diagonal from ½
MOST_SHOWN = 12  # arms in an HTML table
MOST_COUNTED = 500  # arms whose ordered subsets are counted: with more, trying takes seconds and rarely succeeds


class Probability(NamedTuple):
    """A probability, exact or estimated from random samples."""

    value: float
    standard_error: float  # 0 when exact
    exact: bool


class SubsetSummary(TypedDict):
    """How often random subsets of one size have a Condorcet winner or a total order."""

    size: int
    condorcet: float
    total_order: float
    standard_error: float  # of total_order; 0 when exact


class _Gaps(TypedDict, total=False):
    runner_up: str
    gaps: list[float]  # smallest, median, largest
    gamma: float


class MatrixSummary(_Gaps):
    """What `PreferenceMatrix.summary` returns; `runner_up`, `gaps` and `gamma` only if there is a Condorcet winner."""

    name: str
    arms: int
    condorcet_winner: str | None
    borda_winners: list[str]
    copeland_winners: list[str]
    copeland_score: int
    smith_set: list[str]
    three_cycles: int
    total_order: bool
    strongly_transitive: bool
    subsets: list[SubsetSummary]


class PreferenceMatrix:
    """The probability that each of K arms beats each other arm; immutable.

    Args:
        array: (K, K) probabilities: `array[i, j]` is the probability that arm i beats arm j, so `array + array.T` is 1
            and the diagonal is ½.
        names: One name per arm; by default "0", "1", …. Methods accept arms by index or by name.
        name: The name of the problem in results and figures.

    Raises:
        InvalidInput: If the array is not a preference matrix, or the names do not fit it.

    Example:
        >>> matrix = PreferenceMatrix([[0.5, 0.7], [0.3, 0.5]], names=["new", "old"])
        >>> matrix["new", "old"]
        0.7
    """

    def __init__(self, array: ArrayLike, names: Iterable[str] | None = None, name: str = "") -> None:
        self._array = _check_array(array)
        self._names = _check_names(names, len(self._array))
        self._name = str(name)

    @property
    def array(self) -> np.ndarray:
        """The (K, K) float64 probabilities, read-only."""
        return self._array

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the arms."""
        return self._names

    @property
    def name(self) -> str:
        """The name of the problem; by default `matrix-` and the start of its digest."""
        return self._name or f"matrix-{self.digest[:8]}"

    @property
    def arms(self) -> int:
        """K, the number of arms."""
        return len(self._array)

    def index(self, arm: Arm) -> int:
        """Return the index of an arm that is given by index or by name.

        Raises:
            UnknownName: If no arm has that name.
            InvalidInput: If the index is out of range.
        """
        if isinstance(arm, str):
            if arm in self._positions:
                return self._positions[arm]
            raise UnknownName("arm", arm, self._names)
        try:
            index = operator.index(arm)
        except TypeError:
            index = -1
        if not 0 <= index < self.arms:
            raise InvalidInput(f"arm {arm!r} does not exist: expected a name or an index from 0 to {self.arms - 1}")
        return index

    @cached_property
    def _positions(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self._names)}

    @cached_property
    def digest(self) -> str:
        """A hash of the probabilities, the same on every machine; it does not depend on the names."""
        return hashlib.sha256(self._array.astype("<f8").tobytes()).hexdigest()[:16]

    def __getitem__(self, pair: tuple[Arm, Arm]) -> float:
        try:
            i, j = pair
        except TypeError:
            raise InvalidInput(f"P[{pair!r}] is not a pair: expected P[i, j], or P.array[i] for a row") from None
        return float(self._array[self.index(i), self.index(j)])

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self._array, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return self.arms

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PreferenceMatrix):
            return NotImplemented
        return self._names == other._names and np.array_equal(self._array, other._array)

    def __hash__(self) -> int:
        return hash((self._names, self.digest))

    def __reduce__(self) -> tuple[type["PreferenceMatrix"], tuple[np.ndarray, tuple[str, ...], str]]:
        # The default would unpickle a writeable array.
        return PreferenceMatrix, (self._array, self._names, self._name)

    def __repr__(self) -> str:
        winner = self.condorcet_winner
        found = "no Condorcet winner" if winner is None else f"Condorcet winner {self._names[winner]!r}"
        return f"PreferenceMatrix({self.arms} arms, {found})"

    def _repr_html_(self) -> str:
        """The matrix as an HTML table, for notebooks: its first arms if there are many."""
        shown = range(min(self.arms, MOST_SHOWN))
        more = ["…"] if self.arms > MOST_SHOWN else []
        rows = [[self._names[i], *(f"{self._array[i, j]:.3f}" for j in shown), *more] for i in shown]
        strong = {(i, j + 1) for i in shown for j in shown if self.beats[i, j]}
        title = f"{self.name}: {repr(self).removeprefix('PreferenceMatrix(').removesuffix(')')}"
        note = "P[row, column]: the probability that the row's arm beats the column's; wins are bold."
        if more:
            note += f" The first {MOST_SHOWN} of {self.arms} arms."
        return html_table(title, ["", *(self._names[j] for j in shown), *more], rows, note, strong)

    @cached_property
    def beats(self) -> np.ndarray:
        """(K, K) bool: whether i beats j more often than not; never true in both directions."""
        # Both entries must agree: a winner then has positive gaps even where P + Pᵀ is only nearly 1.
        return frozen((self._array > 0.5) & (self._array.T < 0.5))

    @cached_property
    def condorcet_winner(self) -> int | None:
        """The arm that beats every other arm, or None."""
        winners = np.flatnonzero(self.copeland_scores == self.arms - 1)
        return int(winners[0]) if len(winners) else None

    @cached_property
    def copeland_scores(self) -> np.ndarray:
        """(K,) int: how many arms each arm beats."""
        return frozen(self.beats.sum(axis=1))

    @cached_property
    def copeland_winners(self) -> tuple[int, ...]:
        """The arms that beat the most arms: only the Condorcet winner, if there is one."""
        return _indices(self.copeland_scores == self.copeland_scores.max())

    @cached_property
    def borda_scores(self) -> np.ndarray:
        """(K,) float: the probability that each arm beats an arm drawn uniformly from all K, itself included."""
        return frozen(np.array([math.fsum(row) for row in self._array]) / self.arms)

    @cached_property
    def borda_winners(self) -> tuple[int, ...]:
        """The arms with the highest Borda score, equal to within 1e-9."""
        return _indices(self.borda_scores >= self.borda_scores.max() - TOLERANCE)

    @property
    def borda_winner(self) -> int:
        """The arm with the highest Borda score; the first one if several are equal."""
        return self.borda_winners[0]

    @cached_property
    def smith_set(self) -> tuple[int, ...]:
        """The smallest set of arms each of which beats every arm outside it."""
        # A dominating set of s arms has the s highest Copeland scores, so only prefixes of that order qualify.
        order = np.argsort(-self.copeland_scores, kind="stable")
        ordered = self.beats[np.ix_(order, order)]
        inside = total = 0  # wins of the first `size` arms over each other, and over all arms
        for size in range(1, self.arms):
            last = size - 1
            inside += int(ordered[last, :last].sum()) + int(ordered[:last, last].sum())
            total += int(self.copeland_scores[order[last]])
            if total - inside == size * (self.arms - size):
                return tuple(sorted(order[:size].tolist()))
        return tuple(range(self.arms))

    @cached_property
    def three_cycles(self) -> int:
        """The number of triples of arms that beat each other in a cycle."""
        scores = self.copeland_scores
        if int(scores.sum()) == math.comb(self.arms, 2):  # no pair is level: the other triples each have one best arm
            return math.comb(self.arms, 3) - int((scores * (scores - 1) // 2).sum())
        beats = self.beats.astype(np.float32)  # counts up to K fit exactly
        paths = beats @ beats
        return round(float(np.sum(paths * beats.T, dtype=np.float64))) // 3

    @cached_property
    def order(self) -> tuple[int, ...] | None:
        """The arms from best to worst if each beats all later ones (a total order), else None."""
        order = np.argsort(-self.copeland_scores, kind="stable")
        if np.array_equal(self.copeland_scores[order], np.arange(self.arms)[::-1]):
            return tuple(order.tolist())
        return None

    @cached_property
    def gaps(self) -> np.ndarray:
        """(K,) float: Δ_i = P[winner, i] − ½, the gap between the Condorcet winner and each arm.

        Raises:
            NoCondorcetWinner: If the matrix has none.
        """
        return frozen(self._array[self._require_winner("gaps and regret need")] - 0.5)

    @property
    def is_total_order(self) -> bool:
        """Whether the arms can be ordered so that each beats all later ones (Interleaved Filter, Beat the Mean)."""
        return self.order is not None

    @cached_property
    def is_strongly_transitive(self) -> bool:
        """Whether `P[i,k] ≥ max(P[i,j], P[j,k])` for all i, j, k in the total order (Interleaved Filter)."""
        if self.order is None:
            return False
        ordered = self._array[np.ix_(self.order, self.order)]
        upper = np.triu(np.ones_like(ordered, dtype=bool), 1)
        # Comparing neighbors is enough: above the diagonal, rows must not decrease and columns must not increase.
        rows = upper[:, :-1] & (ordered[:, 1:] < ordered[:, :-1] - TOLERANCE)
        columns = upper[1:] & (ordered[:-1] < ordered[1:] - TOLERANCE)
        return not (rows.any() or columns.any())

    @cached_property
    def gamma(self) -> float:
        """The smallest γ of relaxed stochastic transitivity (Beat the Mean), in terms of gaps as in erratum 4.

        The least γ ≥ 1 with γ·Δ_k ≥ max(Δ_j, P[j,k] − ½) for all j, k other than the winner with P[j,k] > ½.

        Raises:
            NoCondorcetWinner: If the matrix has none.
        """
        winner = self._require_winner("gamma needs")
        others = np.arange(self.arms) != winner
        gaps = self.gaps[others]
        among = self._array[np.ix_(others, others)] - 0.5
        needed = np.maximum(gaps[:, None], among) / gaps[None, :]
        return float(needed.max(initial=1.0, where=self.beats[np.ix_(others, others)]))

    def _require_winner(self, what: str) -> int:
        if self.condorcet_winner is None:
            raise NoCondorcetWinner(
                f"{what} an arm that beats every other arm, and this matrix has none. It has "
                f"Copeland winners {_join_names(self._names_of(self.copeland_winners))}, a Borda winner "
                f"{self._names[self.borda_winner]!r} and a Smith set of {len(self.smith_set)} arms; "
                "use a subset with a Condorcet winner"
            )
        return self.condorcet_winner

    def subset(self, arms: Iterable[Arm]) -> "PreferenceMatrix":
        """Return the matrix of some arms, by index or by name, in the given order."""
        chosen = [self.index(arm) for arm in arms]
        return PreferenceMatrix(self._array[np.ix_(chosen, chosen)], [self._names[k] for k in chosen])

    def shuffle(self, seed: int | np.random.Generator) -> "PreferenceMatrix":
        """Return the same arms in a random order."""
        return self.subset(np.random.default_rng(seed).permutation(self.arms).tolist())

    def condorcet_probability(self, size: int) -> float:
        """Compute P_K, the exact probability that `size` arms drawn at random have a Condorcet winner.

        Arm r wins the subsets in which it beats all other arms: C(N_r, size − 1) of them (erratum 3).

        Raises:
            InvalidInput: If `size` is not a whole number from 1 to K.
        """
        self._check_size(size)
        scores, repeats = np.unique(self.copeland_scores, return_counts=True)
        won: int = sum(
            n * math.comb(score, size - 1) for score, n in zip(scores.tolist(), repeats.tolist(), strict=True)
        )
        return won / math.comb(self.arms, size)

    def total_order_probability(self, size: int, samples: int = 100_000, seed: int = 0) -> Probability:
        """Compute the probability that `size` arms drawn at random are totally ordered.

        It is counted exactly if that is feasible, else estimated from random subsets as in the paper. With more than
        500 arms it is always estimated, unless all arms are in a total order.

        Args:
            size: The number of arms in a subset.
            samples: The number of random subsets for an estimate.
            seed: The seed of an estimate.

        Raises:
            InvalidInput: If `size` is not a whole number from 1 to K, or `samples` is below 1.
        """
        self._check_size(size)
        if samples < 1:
            raise InvalidInput(f"samples = {samples}, expected at least 1")
        if size <= 1 or self.is_total_order:
            return Probability(1.0, 0.0, True)
        count = None if self.arms > MOST_COUNTED else self._count_ordered_subsets(size)
        if count is not None:
            return Probability(count / math.comb(self.arms, size), 0.0, True)
        ordered = count_ordered_among_random(self.beats, size, samples, np.random.default_rng(seed))
        near = (ordered + 1) / (samples + 2)  # keeps the standard error above 0 when none or all are ordered
        return Probability(ordered / samples, math.sqrt(near * (1 - near) / samples), False)

    def _count_ordered_subsets(self, size: int) -> int | None:
        counts = self._ordered_subsets
        return count_ordered_subsets(self.beats, size) if counts is None else counts[size]

    @cached_property
    def _ordered_subsets(self) -> tuple[int, ...] | None:
        return count_ordered_subsets_by_size(self.beats)

    def _check_size(self, size: int) -> None:
        if not isinstance(size, int | np.integer) or not 1 <= size <= self.arms:
            raise InvalidInput(f"size is {size!r}: expected a whole number of arms from 1 to {self.arms}")

    def summary(self) -> MatrixSummary:
        """Return the matrix's properties as plain data: winners, gaps, cycles, transitivity, subsets."""
        winner = self.condorcet_winner
        decided: _Gaps = {}
        if winner is not None:
            runner_up, gaps = self._gap_summary(winner)
            decided = {"runner_up": runner_up, "gaps": gaps, "gamma": self.gamma}
        return {
            "name": self.name,
            "arms": self.arms,
            "condorcet_winner": None if winner is None else self._names[winner],
            **decided,
            "borda_winners": self._names_of(self.borda_winners),
            "copeland_winners": self._names_of(self.copeland_winners),
            "copeland_score": int(self.copeland_scores.max()),
            "smith_set": self._names_of(self.smith_set),
            "three_cycles": self.three_cycles,
            "total_order": self.is_total_order,
            "strongly_transitive": self.is_strongly_transitive,
            "subsets": [self._subsets(size) for size in self._subset_sizes],
        }

    @property
    def _subset_sizes(self) -> list[int]:
        return [size for size in (3, 4, 8, 16, 32, 64) if size < self.arms]

    def _gap_summary(self, winner: int) -> tuple[str, list[float]]:
        """The arm closest to the winner; the smallest, the median and the largest gap."""
        others = np.delete(np.arange(self.arms), winner)
        gaps = self.gaps[others]
        return self._names[others[gaps.argmin()]], [float(gaps.min()), float(np.median(gaps)), float(gaps.max())]

    def _subsets(self, size: int) -> SubsetSummary:
        ordered = self.total_order_probability(size, samples=10_000)
        return {
            "size": size,
            "condorcet": self.condorcet_probability(size),
            "total_order": ordered.value,
            "standard_error": ordered.standard_error,
        }

    def describe(self) -> str:
        """Return the matrix's properties as a dozen lines of text."""
        return "\n".join(line() for line in self.describe_lines())

    def describe_lines(self) -> list[Callable[[], str]]:
        """Return functions that compute the lines of `describe`, those that may take long last."""
        properties = self._properties()
        width = max(len(label) for label, _ in properties)

        def line(label: str, text: Callable[[], str]) -> str:
            return f"{label:<{width}}  {text()}"

        return [partial(line, label, text) for label, text in properties]

    def _properties(self) -> list[tuple[str, Callable[[], str]]]:
        """The labels of the lines of `describe`, and functions that return their texts."""
        winner, most = self.condorcet_winner, int(self.copeland_scores.max())
        rows: list[tuple[str, Callable[[], str]]] = [
            ("arms", lambda: str(self.arms)),
            ("Condorcet winner", lambda: "none" if winner is None else self._names[winner]),
        ]
        if winner is not None:
            rows.append(("gaps", lambda: self._gaps_text(winner)))
        rows += [
            ("Borda winner", lambda: _join_names(self._names_of(self.borda_winners))),
            (
                "Copeland winners",
                lambda: f"{_join_names(self._names_of(self.copeland_winners))} (beat {most} of {self.arms - 1})",
            ),
            ("Smith set", self._smith_text),
            ("three-cycles", lambda: f"{self.three_cycles} of {math.comb(self.arms, 3)} triples"),
            ("total order", lambda: "yes" if self.is_total_order else "no"),
            ("strong transitivity", lambda: "yes" if self.is_strongly_transitive else "no"),
        ]
        if winner is not None:
            rows.append(("relaxed transitivity", lambda: f"gamma = {self.gamma:.4g}"))
        for size in self._subset_sizes:
            rows.append((f"random subsets of {size}", partial(self._subset_text, size)))
        return rows

    def _gaps_text(self, winner: int) -> str:
        runner_up, (least, median, largest) = self._gap_summary(winner)
        return f"{least:.4g} (to {runner_up}), median {median:.4g}, largest {largest:.4g}"

    def _smith_text(self) -> str:
        smith = self._names_of(self.smith_set)
        return f"{len(smith)} {'arm' if len(smith) == 1 else 'arms'}: {_join_names(smith)}"

    def _subset_text(self, size: int) -> str:
        subset = self._subsets(size)
        error = f" ± {subset['standard_error']:.1g}" if subset["standard_error"] else ""
        return f"{subset['condorcet']:.3f} have a Condorcet winner, {subset['total_order']:.3g}{error} a total order"

    def _names_of(self, arms: Iterable[int]) -> list[str]:
        return [self._names[arm] for arm in arms]


def _join_names(names: Sequence[str], most: int = 8) -> str:
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown}, …"


def _check_array(array: ArrayLike) -> np.ndarray:
    try:
        if np.iscomplexobj(array):
            raise TypeError("its numbers are complex")
        p = np.array(array, dtype=np.float64, order="C") + 0.0  # -0.0 becomes 0.0: equal matrices, equal digests
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"a preference matrix must be a square table of numbers: {error}") from None
    if p.ndim == 0:
        raise InvalidInput(f"{shorten(array)} is not a matrix: expected a square table of numbers")
    if p.ndim != 2 or p.shape[0] != p.shape[1]:
        raise InvalidInput(f"the matrix has shape {p.shape}, expected square: one row and one column per arm")
    if len(p) < 2:
        raise InvalidInput(f"the matrix has {len(p)} arm, expected at least 2: there is nothing to compare")
    _refuse(p, ~np.isfinite(p), "expected a finite probability")
    _refuse(p, (p < 0) | (p > 1), "expected a probability between 0 and 1")
    _refuse(p, np.diag(np.abs(np.diag(p) - 0.5) > TOLERANCE), "expected 0.5: an arm beats itself half the time")
    off = np.abs(p + p.T - 1) > TOLERANCE
    if off.any():
        i, j = map(int, np.argwhere(off)[0])
        raise InvalidInput(
            f"P[{i}, {j}] + P[{j}, {i}] = {p[i, j]:.10g} + {p[j, i]:.10g} = {p[i, j] + p[j, i]:.10g}, expected 1: "
            "entries must be the probabilities of i beating j"
        )
    np.fill_diagonal(p, 0.5)  # exactly, so that the winner's own gap is 0 and its self-duels cost nothing
    return frozen(p)


def frozen(array: np.ndarray) -> np.ndarray:
    """Make an array read-only, in place, and return it."""
    array.flags.writeable = False
    return array


def _refuse(p: np.ndarray, bad: np.ndarray, expected: str) -> None:
    if bad.any():
        i, j = map(int, np.argwhere(bad)[0])
        raise InvalidInput(f"P[{i}, {j}] = {p[i, j]:g}, {expected}")


def _check_names(names: Iterable[str] | None, arms: int) -> tuple[str, ...]:
    if names is None:
        return tuple(map(str, range(arms)))
    if isinstance(names, str):
        raise InvalidInput(f"names is the text {names!r}: expected a list of names")
    listed = tuple(str(name) for name in names)
    if len(listed) != arms:
        raise InvalidInput(f"{len(listed)} names were given for {arms} arms: expected one name per arm")
    seen: set[str] = set()
    for name in listed:
        if not name:
            raise InvalidInput("an arm has an empty name: expected some text")
        if name in seen:
            raise InvalidInput(f"two arms are called {name!r}: names must be unique")
        seen.add(name)
    return listed


def _indices(mask: np.ndarray) -> tuple[int, ...]:
    return tuple(np.flatnonzero(mask).tolist())
