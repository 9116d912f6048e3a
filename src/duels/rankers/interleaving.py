"""Interleaving: combine two rankings into one list, and infer from its clicks which ranking is better.

There are four methods. Each has an `arrange` kernel, which fills the list and computes the credit of a click on each
slot for either side, and a `judge` kernel, which reads the clicks. The same kernels run compiled in simulations and
interpreted in `interleave` and `infer`.

Simulations may use any method. `interleave` and `infer` are for live traffic, and refuse methods whose mean outcome is
not ½ when clicks ignore relevance: a study would name a winner of two equally good rankers.

Documents with equal scores are ordered at random, again for each comparison and no further than needed: the place of a
document is fixed, on both sides, when it is put on the list. Until then a place holds a random member of its group.

Optimized interleaving: Radlinski & Craswell, WSDM 2013.

The allowed lists are those in which every prefix consists of the tops of both rankings. Of their distributions, the
method chooses one under which random clicks in any top k give both rankings the same expected credit, and which
distinguishes rankings best.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from .. import specs
from ..engine.compiling import Kernel
from ..errors import InvalidInput, UnknownName, shorten

if TYPE_CHECKING:
    from .rankers import Rankings


LENGTH = 10


class Workspace(NamedTuple):
    """The memory of one comparison: two rankings of up to N documents, a list of up to L."""

    documents: np.ndarray  # (2, N): documents[s, p] = the document at place p of ranking s
    places: np.ndarray  # (2, N): its inverse
    first: np.ndarray  # (2, N): the first place of the group of tied documents at place p
    last: np.ndarray  # (2, N): one past its last place
    taken: np.ndarray  # (2, N) bool: whether the document at that place is on the list
    shown: np.ndarray  # (L,) int64: the list
    worth: np.ndarray  # (2, L) float64: the credit of a click on a slot for each side, as the method's judge reads it
    grades: np.ndarray  # (L,) int64: the grades of the documents on the list
    clicked: np.ndarray  # (L,) bool
    weight: np.ndarray  # (N,) float64: 1 / (p + 1)^τ
    mass: np.ndarray  # (N + 1,) float64: the weight of the first n places


def make_workspace(most: int, length: int = LENGTH, tau: float = 3.0, kind: DTypeLike = np.int32) -> Workspace:
    """Make an empty workspace for rankings of up to `most` documents."""
    weight = np.arange(1, most + 1, dtype=np.float64) ** -tau
    documents, places, first, last = (np.zeros((2, most), kind) for _ in range(4))
    return Workspace(
        documents,
        places,
        first,
        last,
        taken=np.zeros((2, most), np.bool_),
        shown=np.zeros(length, np.int64),
        worth=np.zeros((2, length)),
        grades=np.zeros(length, np.int64),
        clicked=np.zeros(length, np.bool_),
        weight=weight,
        mass=np.concatenate([[0.0], np.cumsum(weight)]),
    )


def load(workspace: Workspace, rankings: "Rankings", a: int, b: int, query: int) -> int:
    """Copy the rankings of a query by rankers a and b to the workspace, and return the number of documents."""
    start: int = rankings.offsets[query]
    end: int = rankings.offsets[query + 1]
    copy_side(workspace, 0, rankings, a, start, end)
    copy_side(workspace, 1, rankings, b, start, end)
    return end - start


def copy_side(workspace: Workspace, side: int, rankings: "Rankings", ranker: int, start: int, end: int) -> None:
    for p in range(end - start):
        workspace.documents[side, p] = rankings.order[ranker, start + p]
        workspace.places[side, p] = rankings.place[ranker, start + p]
        workspace.first[side, p] = rankings.first[ranker, start + p]
        workspace.last[side, p] = rankings.last[ranker, start + p]


def clear(workspace: Workspace, shown: int) -> None:
    """Clear the list. Tied documents keep their current order: any order is a valid start."""
    for k in range(shown):
        workspace.taken[0, workspace.places[0, workspace.shown[k]]] = False
        workspace.taken[1, workspace.places[1, workspace.shown[k]]] = False


def free_place(workspace: Workspace, side: int, place: int, rng: np.random.Generator) -> int:
    """A random place of the same group whose document is not yet fixed."""
    first: int = workspace.first[side, place]
    last: int = workspace.last[side, place]
    if last - first == 1:
        return place
    while True:
        other = first + int(rng.random() * (last - first))
        if not workspace.taken[side, other]:
            return other


def swap(workspace: Workspace, side: int, p: int, q: int) -> None:
    d, e = workspace.documents[side, p], workspace.documents[side, q]
    workspace.documents[side, p], workspace.documents[side, q] = e, d
    workspace.places[side, e], workspace.places[side, d] = p, q


def put(workspace: Workspace, slot: int, side: int, place: int, rng: np.random.Generator) -> int:
    """Put the document at that place on the list and fix its place on both sides; return the one on the other side."""
    swap(workspace, side, place, free_place(workspace, side, place, rng))
    document = workspace.documents[side, place]
    other = 1 - side
    there = workspace.places[other, document]
    settled = free_place(workspace, other, there, rng)
    swap(workspace, other, there, settled)
    workspace.taken[side, place] = True
    workspace.taken[other, settled] = True
    workspace.shown[slot] = document
    return settled


def next_free(workspace: Workspace, side: int, place: int) -> int:
    """The first place from there on whose document is not on the list yet."""
    while workspace.taken[side, place]:
        place += 1
    return place


def arrange_probabilistic(workspace: Workspace, documents: int, length: int, rng: np.random.Generator) -> int:
    """Hofmann, Whiteson & de Rijke (CIKM 2011): each side's credit is its share of the document's probability."""
    return fill_probabilistic(workspace, documents, length, True, rng)


def arrange_assigned(workspace: Workspace, documents: int, length: int, rng: np.random.Generator) -> int:
    """The same lists; a click is credited to the side that contributed the document."""
    return fill_probabilistic(workspace, documents, length, False, rng)


def fill_probabilistic(
    workspace: Workspace, documents: int, length: int, marginal: bool, rng: np.random.Generator
) -> int:
    mass_a = mass_b = workspace.mass[documents]
    length = min(length, documents)
    head_a = head_b = 0
    for slot in range(length):
        side = 0 if rng.random() < 0.5 else 1
        if side == 0:
            head_a = next_free(workspace, 0, head_a)
            place = draw_place(workspace, 0, head_a, documents, mass_a, rng)
            place_a, place_b = place, put(workspace, slot, 0, place, rng)
        else:
            head_b = next_free(workspace, 1, head_b)
            place = draw_place(workspace, 1, head_b, documents, mass_b, rng)
            place_b, place_a = place, put(workspace, slot, 1, place, rng)
        weight_a, weight_b = workspace.weight[place_a], workspace.weight[place_b]
        if marginal:
            share_a, share_b = weight_a / mass_a, weight_b / mass_b
            workspace.worth[0, slot] = share_a / (share_a + share_b)
            workspace.worth[1, slot] = share_b / (share_a + share_b)
        else:
            workspace.worth[0, slot] = 1.0 - side
            workspace.worth[1, slot] = side
        mass_a = mass_without(workspace, 0, mass_a, weight_a, documents)
        mass_b = mass_without(workspace, 1, mass_b, weight_b, documents)
    return length


def mass_without(workspace: Workspace, side: int, mass: float, weight: float, documents: int) -> float:
    """The weight of the remaining places once one is taken; summed again where subtraction would lose precision."""
    if mass - weight > 0.001 * workspace.mass[documents]:
        return mass - weight
    mass = 0.0
    for p in range(documents):
        if not workspace.taken[side, p]:
            mass += workspace.weight[p]
    return mass


def draw_place(
    workspace: Workspace, side: int, head: int, documents: int, mass: float, rng: np.random.Generator
) -> int:
    """Draw a place by weight among those whose documents are not on the list; `head` is the first of them."""
    left = rng.random() * mass
    place = head
    for p in range(head, documents):
        if not workspace.taken[side, p]:
            place = p
            left -= workspace.weight[p]
            if left < 0.0:
                break
    return place


def arrange_team_draft(workspace: Workspace, documents: int, length: int, rng: np.random.Generator) -> int:
    """Radlinski, Kurup & Joachims (CIKM 2008): sides take turns; the first side of each round is drawn at random."""
    length = min(length, documents)
    picks_a = picks_b = 0
    head_a = head_b = 0
    for slot in range(length):
        if picks_a < picks_b or (picks_a == picks_b and rng.random() < 0.5):
            head_a = next_free(workspace, 0, head_a)
            put(workspace, slot, 0, head_a, rng)
            picks_a += 1
            workspace.worth[0, slot], workspace.worth[1, slot] = 1.0, 0.0
        else:
            head_b = next_free(workspace, 1, head_b)
            put(workspace, slot, 1, head_b, rng)
            picks_b += 1
            workspace.worth[0, slot], workspace.worth[1, slot] = 0.0, 1.0
    return length


def arrange_balanced(workspace: Workspace, documents: int, length: int, rng: np.random.Generator) -> int:
    """Joachims (KDD 2002): prefixes contain the tops of both rankings, to depths that differ by at most one.

    The credit holds the document's places in both rankings.
    """
    length = min(length, documents)
    a_first = rng.random() < 0.5
    head_a = head_b = 0
    slot = 0
    while slot < length:
        if head_a < head_b or (head_a == head_b and a_first):
            if not workspace.taken[0, head_a]:
                workspace.worth[1, slot] = put(workspace, slot, 0, head_a, rng)
                workspace.worth[0, slot] = head_a
                slot += 1
            head_a += 1
        else:
            if not workspace.taken[1, head_b]:
                workspace.worth[0, slot] = put(workspace, slot, 1, head_b, rng)
                workspace.worth[1, slot] = head_b
                slot += 1
            head_b += 1
    return length


def judge_by_worth(workspace: Workspace, length: int) -> float:
    """The side with more total credit for its clicks."""
    lead = 0.0
    for k in range(length):
        if workspace.clicked[k]:
            lead += workspace.worth[0, k] - workspace.worth[1, k]
    return outcome_of(lead)


def judge_balanced(workspace: Workspace, length: int) -> float:
    """The side with more clicked documents in its top k, where k is the depth of the lowest click."""
    depth = -1.0
    for k in range(length):
        if workspace.clicked[k]:
            depth = min(workspace.worth[0, k], workspace.worth[1, k])
    lead = 0.0
    for k in range(length):
        if workspace.clicked[k]:
            if workspace.worth[0, k] <= depth:
                lead += 1.0
            if workspace.worth[1, k] <= depth:
                lead -= 1.0
    return outcome_of(lead)


def outcome_of(lead: float) -> float:
    if abs(lead) < 1e-9:  # sums of the same credits in a different order
        return 0.5
    return 1.0 if lead > 0.0 else 0.0


class Method(NamedTuple):
    """An interleaving method: its kernels, and τ of the softmax."""

    name: str
    arrange: Kernel
    judge: Kernel
    tau: float


DEFAULTS: dict[str, dict[str, specs.Value]] = {
    "probabilistic": {"tau": 3.0, "credit": "marginal"},
    "team-draft": {},
    "balanced": {},
    "optimized": {},
}


LIVE = "team-draft"  # the default method for live traffic
IDS = "[hit['_id'] for hit in response['hits']['hits']]"  # how a search engine's response becomes a ranking
MARGINAL = "'probabilistic' with marginalized credit"
OUTCOMES: dict[float, Literal["left", "right", "tie"]] = {1.0: "left", 0.0: "right", 0.5: "tie"}


def find_method(name: str | Method) -> Method:
    """Find an interleaving method for simulations.

    Args:
        name: `probabilistic`, `team-draft`, `balanced` or `optimized`, with or without parameters, such as
            `"probabilistic:tau=1,credit=assigned"`; or a method, which is returned unchanged.

    Raises:
        UnknownName: If there is no such method or parameter.
        InvalidInput: If a parameter has a wrong value.
    """
    return _find_method(name, "marginal")


def find_live_method(name: str | Method = LIVE) -> Method:
    """Find an interleaving method for live traffic. There `probabilistic` has assigned credit.

    Args:
        name: `team-draft` or `probabilistic`, as in `find_method`.

    Raises:
        UnknownName: If there is no such method or parameter.
        InvalidInput: If a parameter has a wrong value, or the method is for simulations only.
    """
    method = _find_method(name, "assigned")
    if method.arrange is arrange_probabilistic:
        raise _bias_error(MARGINAL)
    if method.arrange not in (arrange_team_draft, arrange_assigned):
        raise _bias_error(repr(method.name))
    return method


def _bias_error(method: str) -> InvalidInput:
    return InvalidInput(
        f"{method} is not for live traffic: for clicks that ignore relevance its mean outcome is not 1/2, so a study "
        "would name a winner of two equally good rankers. Use 'team-draft', or 'probabilistic' with assigned credit"
    )


def _find_method(name: str | Method, credit: str) -> Method:
    """Find a method, with this credit for `probabilistic` unless it is given."""
    if isinstance(name, Method):
        return name
    if not isinstance(name, str):
        raise InvalidInput(f"{name!r} is not an interleaving method: expected a name such as {LIVE!r}")
    kind, given = specs.split_spec(name, "interleaving method")
    if kind not in DEFAULTS:
        raise UnknownName("interleaving method", kind, DEFAULTS)
    if kind == "probabilistic":
        given = {"credit": credit} | given
    values = specs.fill(kind, given, DEFAULTS[kind], "duels.rankers.interleave")
    spec = specs.join(kind, values, DEFAULTS[kind])
    if kind == "team-draft":
        return Method(spec, arrange_team_draft, judge_by_worth, 3.0)
    if kind == "balanced":
        return Method(spec, arrange_balanced, judge_balanced, 3.0)
    if kind == "optimized":
        return Method(spec, arrange_optimized, judge_by_worth, 3.0)
    tau = float(values["tau"])
    if not 0 <= tau <= 50:
        raise InvalidInput(f"tau of probabilistic is {tau}: expected 0 (any order) to 50, usually 3")
    if values["credit"] not in ("marginal", "assigned"):
        raise InvalidInput(f"credit of probabilistic is {values['credit']!r}: expected 'marginal' or 'assigned'")
    arrange = arrange_probabilistic if values["credit"] == "marginal" else arrange_assigned
    return Method(spec, arrange, judge_by_worth, tau)


class Interleaving(NamedTuple):
    """An interleaved list and its record.

    Attributes:
        documents: The documents to show, best first.
        record: What `infer` needs to judge the clicks: plain data that can be stored as JSON. Under `left` and `right`
            it has the credit of each ranking for a click on each document.
    """

    documents: list[Any]
    record: dict[str, Any]


def interleave(
    left: Sequence[Hashable] | np.ndarray,
    right: Sequence[Hashable] | np.ndarray,
    *,
    method: str | Method = LIVE,
    length: int = LENGTH,
    rng: np.random.Generator | int | None = None,
    missing: str = "last",
) -> Interleaving:
    """Interleave two rankings into one list to show to a user.

    Args:
        left: The ranking of the arm on the left: ids of documents, best first; any hashable values. It may be empty.
        right: The ranking of the arm on the right.
        method: The interleaving method: `"team-draft"`, or `"probabilistic"`, which has assigned credit here. With the
            others a study would name a winner of two equally good rankers.
        length: The length of the list.
        rng: A random generator, or a seed, for tests. Leave it out in production: with one seed all lists have the same
            coins.
        missing: What to do with a document that only one ranking has: `"last"` puts it behind all documents of the
            ranking that lacks it, tied with others missing there; `"refuse"` raises.

    Returns:
        The list, and the record that `infer` needs.

    Raises:
        InvalidInput: If a ranking is not a list of ids, or has one twice, or the method is for simulations only.

    Example:
        >>> shown = interleave(["a", "b", "c"], ["b", "c", "a"], rng=1)
        >>> infer(shown.record, clicks=["b"])
        'right'
    """
    return merge_rankings(left, right, find_live_method(method), length, np.random.default_rng(rng), missing)


def infer(record: Mapping[str, Any], clicks: Iterable[object]) -> Literal["left", "right", "tie"]:
    """Infer from clicks which ranking is better; `study.tell` takes the answer as it is.

    Args:
        record: The record that `interleave` returned.
        clicks: The documents that were clicked; repeated clicks count once.

    Returns:
        `"left"` or `"right"`, the ranking that is better, or `"tie"`.

    Raises:
        InvalidInput: If the record is malformed or of a method for simulations, or a clicked document is not on the
            list.
    """
    method, documents, worth = _read_record(record)
    find_live_method(record["method"])
    if not np.isin(worth, (0.0, 1.0)).all():
        raise _bias_error(MARGINAL)
    return OUTCOMES[_judge(method, documents, worth, clicks)]


def merge_rankings(
    left: Sequence[Hashable] | np.ndarray,
    right: Sequence[Hashable] | np.ndarray,
    method: Method,
    length: int,
    rng: np.random.Generator,
    missing: str = "last",
) -> Interleaving:
    """Interleave two rankings by any method, see `interleave`."""
    ids, workspace = _workspace_of(left, right, length, method.tau, missing)
    shown = method.arrange(workspace, len(ids), length, rng)
    documents = [ids[d] for d in workspace.shown[:shown].tolist()]
    worth = workspace.worth[:, :shown].tolist()
    record = {"method": method.name, "documents": documents, "left": worth[0], "right": worth[1]}
    return Interleaving(documents, record)


def judge_clicks(record: Mapping[str, Any], clicks: Iterable[object]) -> float:
    """Return the outcome of clicks on a list of any method, see `infer`: 1 if the left ranking won, 0, or ½."""
    return _judge(*_read_record(record), clicks)


def _read_record(record: Mapping[str, Any]) -> tuple[Method, list[object], np.ndarray]:
    """The method, the documents and (2, L) float64: the credit of a click on each for either side."""
    try:
        method, documents = find_method(record["method"]), list(record["documents"])
        worth = np.array([record["left"], record["right"]], dtype=np.float64).reshape(2, len(documents))
        if not np.isfinite(worth).all():
            raise ValueError("its worths are not numbers")
        return method, [_hashable(document) for document in documents], worth
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(
            f"this is not the record of an interleaved list ({error}): pass what `interleave` returned"
        ) from None


def _judge(method: Method, documents: list[object], worth: np.ndarray, clicks: Iterable[object]) -> float:
    if clicks is None or isinstance(clicks, str):
        raise InvalidInput(f"clicks is {clicks!r}: expected a list of documents, empty if none was clicked")
    clicked = {_hashable(document) for document in clicks}
    unknown = clicked.difference(documents)
    if unknown:
        raise InvalidInput(f"{next(iter(unknown))!r} was clicked but is not on the list of {len(documents)} documents")
    marks = np.array([document in clicked for document in documents], np.bool_)
    workspace = make_workspace(1, len(documents))._replace(worth=worth, clicked=marks)
    return float(method.judge(workspace, len(documents)))


def _hashable(document: object) -> object:
    """A tuple for a list: JSON turns tuples into lists."""
    return tuple(document) if isinstance(document, list) else document


def _ids_of(side: str, ranking: Sequence[Hashable] | np.ndarray) -> list[Hashable]:
    expected = f"expected a list of ids, best first, such as {IDS}"
    if isinstance(ranking, str | bytes | Mapping | set | frozenset) or not isinstance(ranking, Iterable):
        raise InvalidInput(f"the {side} ranking is {shorten(ranking)}: {expected}")
    ids = ranking.tolist() if isinstance(ranking, np.ndarray) else list(ranking)
    for document in ids:
        try:
            hash(document)
        except TypeError:
            raise InvalidInput(f"the {side} ranking has the document {shorten(document)}: {expected}") from None
    return ids


def _workspace_of(
    left: Sequence[Hashable] | np.ndarray,
    right: Sequence[Hashable] | np.ndarray,
    length: int,
    tau: float,
    missing: str,
) -> tuple[list[Hashable], Workspace]:
    if missing not in ("refuse", "last"):
        raise InvalidInput(f"missing is {missing!r}: expected 'refuse' or 'last'")
    if length < 1:
        raise InvalidInput(f"length is {length}: expected a list of at least 1 document")
    rankings = [_ids_of(side, ranking) for side, ranking in (("left", left), ("right", right))]
    ids = list(dict.fromkeys([*rankings[0], *rankings[1]]))
    numbers = {document: k for k, document in enumerate(ids)}
    on = make_workspace(len(ids), min(length, max(len(ids), 1)), tau)
    for side, ranking in enumerate(rankings):
        if len(set(ranking)) < len(ranking):
            twice = next(document for document in ranking if ranking.count(document) > 1)
            raise InvalidInput(f"document {twice!r} appears twice in one ranking: expected it once")
        present = set(ranking)
        absent = [document for document in ids if document not in present]
        if absent and missing == "refuse":
            raise InvalidInput(
                f"the rankings have different documents: {absent[0]!r} is in only one of them. "
                "Rank the same documents, or leave missing='refuse' out to rank absent ones last"
            )
        order = [numbers[document] for document in [*ranking, *absent]]
        on.documents[side], on.places[side, order] = order, np.arange(len(ids))
        on.first[side], on.last[side] = np.arange(len(ids)), np.arange(1, len(ids) + 1)
        on.first[side, len(ranking) :], on.last[side, len(ranking) :] = len(ranking), len(ids)
    return ids, on


MOST = 10  # longer lists have over a thousand arrangements


def arrange_optimized(workspace: Workspace, documents: int, length: int, rng: np.random.Generator) -> int:
    """Draw a list from the optimized distribution; each side's credit for a click is the inverse of its place."""
    length = min(length, documents)
    tops = [find_settled_top(workspace, side, length, rng) for side in (0, 1)]
    seen = list(dict.fromkeys([*tops[0], *tops[1]]))
    numbers = {document: k for k, document in enumerate(seen)}
    a, b = (tuple(numbers[document] for document in top) for top in tops)
    lists, chances = distribution(a, b)
    chosen = lists[int(np.searchsorted(np.cumsum(chances), rng.random() * chances.sum(), side="right"))]
    for slot, number in enumerate(chosen):
        workspace.shown[slot] = seen[number]
        workspace.worth[0, slot], workspace.worth[1, slot] = inverse_place(a, number), inverse_place(b, number)
    return length


def find_settled_top(workspace: Workspace, side: int, length: int, rng: np.random.Generator) -> list[int]:
    """The first documents of a ranking, ties in random order."""
    top: list[int] = []
    place = 0
    while len(top) < length:
        first, last = int(workspace.first[side, place]), int(workspace.last[side, place])
        group = workspace.documents[side, first:last].tolist()
        top += [group[k] for k in rng.permutation(len(group))]
        place = last
    return top[:length]


def inverse_place(ranking: tuple[int, ...], document: int) -> float:
    return 1.0 / (ranking.index(document) + 1) if document in ranking else 1.0 / (len(ranking) + 1)


@lru_cache(maxsize=100_000)
def distribution(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Return the allowed lists and their probabilities for two rankings of equal length."""
    if len(a) > MOST:
        raise InvalidInput(f"optimized interleaving of {len(a)} documents: expected lists of at most {MOST}")
    lists = list_allowed(a, b)
    credit = np.array([[inverse_place(a, d) - inverse_place(b, d) for d in one] for one in lists])
    return lists, _solve(credit)


def list_allowed(a: tuple[int, ...], b: tuple[int, ...]) -> list[tuple[int, ...]]:
    """List all lists in which each document is the best of a or of b that is not yet on the list."""
    lists: list[tuple[int, ...]] = [()]
    for _ in a:
        lists = [(*one, d) for one in lists for d in sorted({_best_left(a, one), _best_left(b, one)})]
    return lists


def _best_left(ranking: tuple[int, ...], taken: tuple[int, ...]) -> int:
    return next(document for document in ranking if document not in taken)


def _solve(credit: np.ndarray) -> np.ndarray:
    """Probabilities of the lists: unbiased for random clicks in any top k, with the highest sensitivity."""
    from scipy.optimize import linprog

    bias = np.cumsum(credit, axis=1).T  # row k: the total credit of one click at each place of the top k
    constraints = np.vstack([np.ones(len(credit)), bias])
    wanted = np.zeros(len(constraints))
    wanted[0] = 1.0
    found = linprog(-_sensitivity(credit), A_eq=constraints, b_eq=wanted, bounds=(0, None), method="highs")
    if not found.success:
        raise InvalidInput(f"no unbiased distribution over {len(credit)} lists was found: {found.message}")
    chances = np.clip(found.x, 0.0, None)
    return np.asarray(chances / chances.sum())


def _sensitivity(credit: np.ndarray) -> np.ndarray:
    """For one click, at place k with probability ∝ 1/k: the winner's entropy, times P(there is one)."""
    at = 1.0 / np.arange(1, credit.shape[1] + 1)
    at /= at.sum()
    wins, losses = ((credit > 1e-12) * at).sum(axis=1), ((credit < -1e-12) * at).sum(axis=1)
    decided = wins + losses
    share = np.divide(wins, decided, out=np.full_like(wins, 0.5), where=decided > 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        entropy = -np.nan_to_num(share * np.log2(share)) - np.nan_to_num((1 - share) * np.log2(1 - share))
    return np.asarray(decided * entropy)
