"""Interleaving: one list from two rankings, and from its clicks which ranking is better.

Four methods, each an `arrange` kernel that fills the list and says what a click on each slot is worth to either side,
and a `judge` kernel that reads the clicks. The same kernels run compiled in simulations and interpreted in the live
face, `interleave` and `infer`.

Documents with equal scores are ordered at random, afresh for each comparison and no further than needed: a place is
settled when its document is put on the list, on both sides. Until then it holds one of its group at random.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import specs
from ..errors import InvalidInput, UnknownName

LENGTH = 10


class Desk(NamedTuple):
    """One comparison's working memory: two rankings of up to N documents, a list of up to L."""

    documents: np.ndarray  # (2, N): documents[s, p] = the document at place p of ranking s
    places: np.ndarray  # (2, N): its inverse
    first: np.ndarray  # (2, N): the first place of the group of equals that place p belongs to
    last: np.ndarray  # (2, N): one past its last place
    taken: np.ndarray  # (2, N) bool: whether the document at that place is on the list
    shown: np.ndarray  # (L,) int64: the list
    worth: np.ndarray  # (2, L) float64: what a click on a slot is worth to each side, as the method's judge reads it
    grades: np.ndarray  # (L,) int64: how relevant the documents on the list are
    clicked: np.ndarray  # (L,) bool
    weight: np.ndarray  # (N,) float64: 1 / (p + 1)^τ
    mass: np.ndarray  # (N + 1,) float64: the weight of the first n places


def desk(most: int, length: int = LENGTH, tau: float = 3.0, kind: Any = np.int32) -> Desk:
    """An empty desk for rankings of up to `most` documents."""
    weight = np.arange(1, most + 1, dtype=np.float64) ** -tau
    documents, places, first, last = (np.zeros((2, most), kind) for _ in range(4))
    return Desk(
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


def load(desk, rankings, a, b, query):
    """Put rankers a and b's rankings of a query on the desk; how many documents there are."""
    start, end = rankings.offsets[query], rankings.offsets[query + 1]
    copy_side(desk, 0, rankings, a, start, end)
    copy_side(desk, 1, rankings, b, start, end)
    return end - start


def copy_side(desk, side, rankings, ranker, start, end):
    for p in range(end - start):
        desk.documents[side, p] = rankings.order[ranker, start + p]
        desk.places[side, p] = rankings.place[ranker, start + p]
        desk.first[side, p] = rankings.first[ranker, start + p]
        desk.last[side, p] = rankings.last[ranker, start + p]


def clear(desk, shown):
    """Take the list off the desk. Groups of equals stay in the order they are in: any order will do to start from."""
    for k in range(shown):
        desk.taken[0, desk.places[0, desk.shown[k]]] = False
        desk.taken[1, desk.places[1, desk.shown[k]]] = False


def free_place(desk, side, place, rng):
    """A place of the same group whose document is not yet settled, each equally likely."""
    first, last = desk.first[side, place], desk.last[side, place]
    if last - first == 1:
        return place
    while True:
        other = first + int(rng.random() * (last - first))
        if not desk.taken[side, other]:
            return other


def swap(desk, side, p, q):
    d, e = desk.documents[side, p], desk.documents[side, q]
    desk.documents[side, p], desk.documents[side, q] = e, d
    desk.places[side, e], desk.places[side, d] = p, q


def put(desk, slot, side, place, rng):
    """Put the document at that place on the list, settling where it stands on both sides; where on the other side."""
    swap(desk, side, place, free_place(desk, side, place, rng))
    document = desk.documents[side, place]
    other = 1 - side
    there = desk.places[other, document]
    settled = free_place(desk, other, there, rng)
    swap(desk, other, there, settled)
    desk.taken[side, place] = True
    desk.taken[other, settled] = True
    desk.shown[slot] = document
    return settled


def next_free(desk, side, place):
    """The first place from there on whose document is not on the list."""
    while desk.taken[side, place]:
        place += 1
    return place


def arrange_probabilistic(desk, documents, length, rng):
    """Hofmann, Whiteson & de Rijke (CIKM 2011): a click is worth each side's share in the chance of that document."""
    return fill_probabilistic(desk, documents, length, True, rng)


def arrange_assigned(desk, documents, length, rng):
    """The same lists; a click counts for the side whose turn it was."""
    return fill_probabilistic(desk, documents, length, False, rng)


def fill_probabilistic(desk, documents, length, marginal, rng):
    mass_a = mass_b = desk.mass[documents]
    length = min(length, documents)
    head_a = head_b = 0
    for slot in range(length):
        side = 0 if rng.random() < 0.5 else 1
        if side == 0:
            head_a = next_free(desk, 0, head_a)
            place = draw_place(desk, 0, head_a, documents, mass_a, rng)
            place_a, place_b = place, put(desk, slot, 0, place, rng)
        else:
            head_b = next_free(desk, 1, head_b)
            place = draw_place(desk, 1, head_b, documents, mass_b, rng)
            place_b, place_a = place, put(desk, slot, 1, place, rng)
        weight_a, weight_b = desk.weight[place_a], desk.weight[place_b]
        if marginal:
            share_a, share_b = weight_a / mass_a, weight_b / mass_b
            desk.worth[0, slot] = share_a / (share_a + share_b)
            desk.worth[1, slot] = share_b / (share_a + share_b)
        else:
            desk.worth[0, slot] = 1.0 - side
            desk.worth[1, slot] = side
        mass_a = mass_without(desk, 0, mass_a, weight_a, documents)
        mass_b = mass_without(desk, 1, mass_b, weight_b, documents)
    return length


def mass_without(desk, side, mass, weight, documents):
    """The weight of the places left once one is taken; added up anew where subtracting would leave only rounding."""
    if mass - weight > 0.001 * desk.mass[documents]:
        return mass - weight
    mass = 0.0
    for p in range(documents):
        if not desk.taken[side, p]:
            mass += desk.weight[p]
    return mass


def draw_place(desk, side, head, documents, mass, rng):
    """A place by its weight among those whose documents are not on the list; `head` is the first of them."""
    left = rng.random() * mass
    place = head
    for p in range(head, documents):
        if not desk.taken[side, p]:
            place = p
            left -= desk.weight[p]
            if left < 0.0:
                break
    return place


def arrange_team_draft(desk, documents, length, rng):
    """Radlinski, Kurup & Joachims (CIKM 2008): sides take turns, who begins is drawn each round."""
    length = min(length, documents)
    picks_a = picks_b = 0
    head_a = head_b = 0
    for slot in range(length):
        if picks_a < picks_b or (picks_a == picks_b and rng.random() < 0.5):
            head_a = next_free(desk, 0, head_a)
            put(desk, slot, 0, head_a, rng)
            picks_a += 1
            desk.worth[0, slot], desk.worth[1, slot] = 1.0, 0.0
        else:
            head_b = next_free(desk, 1, head_b)
            put(desk, slot, 1, head_b, rng)
            picks_b += 1
            desk.worth[0, slot], desk.worth[1, slot] = 0.0, 1.0
    return length


def arrange_balanced(desk, documents, length, rng):
    """Joachims (KDD 2002): prefixes hold both rankings' tops to equal depth, but for one; worth is the two places."""
    length = min(length, documents)
    a_first = rng.random() < 0.5
    head_a = head_b = 0
    slot = 0
    while slot < length:
        if head_a < head_b or (head_a == head_b and a_first):
            if not desk.taken[0, head_a]:
                desk.worth[1, slot] = put(desk, slot, 0, head_a, rng)
                desk.worth[0, slot] = head_a
                slot += 1
            head_a += 1
        else:
            if not desk.taken[1, head_b]:
                desk.worth[0, slot] = put(desk, slot, 1, head_b, rng)
                desk.worth[1, slot] = head_b
                slot += 1
            head_b += 1
    return length


def judge_by_worth(desk, length):
    """The side whose clicks are worth more in all."""
    lead = 0.0
    for k in range(length):
        if desk.clicked[k]:
            lead += desk.worth[0, k] - desk.worth[1, k]
    return outcome_of(lead)


def judge_balanced(desk, length):
    """The side that has more of the clicked documents in its top k, k being the depth of the lowest click."""
    depth = -1.0
    for k in range(length):
        if desk.clicked[k]:
            depth = min(desk.worth[0, k], desk.worth[1, k])
    lead = 0.0
    for k in range(length):
        if desk.clicked[k]:
            if desk.worth[0, k] <= depth:
                lead += 1.0
            if desk.worth[1, k] <= depth:
                lead -= 1.0
    return outcome_of(lead)


def outcome_of(lead):
    if abs(lead) < 1e-9:  # sums of the same credits in another order
        return 0.5
    return 1.0 if lead > 0.0 else 0.0


class Method(NamedTuple):
    """A way of interleaving: its kernels and the softmax's τ."""

    name: str
    arrange: Callable
    judge: Callable
    tau: float


DEFAULTS: dict[str, dict[str, Any]] = {
    "probabilistic": {"tau": 3.0, "credit": "marginal"},
    "team-draft": {},
    "balanced": {},
    "optimised": {},
}


def find_method(name: str | Method) -> Method:
    """The method of that name, with its parameters: `"probabilistic"`, `"probabilistic:tau=1,credit=assigned"`."""
    if isinstance(name, Method):
        return name
    if not isinstance(name, str):
        raise InvalidInput(f"{name!r} is no interleaving method: expected a name such as 'probabilistic'")
    kind, given = specs.split(name, "interleaving method")
    if kind not in DEFAULTS:
        raise UnknownName("interleaving method", kind, DEFAULTS)
    values = specs.fill(kind, given, DEFAULTS[kind], "duels.ranking.interleave")
    said = specs.join(kind, values, DEFAULTS[kind])
    if kind == "team-draft":
        return Method(said, arrange_team_draft, judge_by_worth, 3.0)
    if kind == "balanced":
        return Method(said, arrange_balanced, judge_balanced, 3.0)
    if kind == "optimised":
        from .optimised import arrange_optimised

        return Method(said, arrange_optimised, judge_by_worth, 3.0)
    if not 0 <= values["tau"] <= 50:
        raise InvalidInput(f"tau of probabilistic is {values['tau']}: expected 0 (any order) to 50, usually 3")
    if values["credit"] not in ("marginal", "assigned"):
        raise InvalidInput(f"credit of probabilistic is {values['credit']!r}: expected 'marginal' or 'assigned'")
    arrange = arrange_probabilistic if values["credit"] == "marginal" else arrange_assigned
    return Method(said, arrange, judge_by_worth, values["tau"])


class Interleaving(NamedTuple):
    """A list to show, and the record from which its clicks will be judged."""

    documents: list[Any]
    record: dict[str, Any]  # plain data: survives JSON


def interleave(
    ranking_a: Sequence[Any],
    ranking_b: Sequence[Any],
    *,
    method: str | Method = "probabilistic",
    length: int = LENGTH,
    rng: np.random.Generator | int | None = None,
    missing: str = "refuse",
) -> Interleaving:
    """One list from two rankings of documents, best first; documents are any hashable ids.

    missing: what to do with a document that only one ranking has: `"refuse"`, or `"last"` to let it stand behind all
    others of the ranking that lacks it, level with others missing there.
    """
    chosen = find_method(method)
    ids, desk_ = _desk_of(ranking_a, ranking_b, length, chosen.tau, missing)
    shown = chosen.arrange(desk_, len(ids), length, np.random.default_rng(rng))
    documents = [ids[d] for d in desk_.shown[:shown].tolist()]
    worth = desk_.worth[:, :shown].tolist()
    return Interleaving(documents, {"method": chosen.name, "documents": documents, "a": worth[0], "b": worth[1]})


def infer(record: dict[str, Any], clicks: Iterable[Any]) -> float:
    """Which ranking the clicks prefer: 1 the first, 0 the second, ½ neither. Clicking a document again adds nothing."""
    try:
        chosen, documents = find_method(record["method"]), list(record["documents"])
        worth = np.array([record["a"], record["b"]], dtype=np.float64).reshape(2, len(documents))
        if not np.isfinite(worth).all():
            raise ValueError("its worths are not numbers")
        documents = [_hashable(document) for document in documents]
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidInput(f"this is no record of an interleaved list ({error}): pass what `interleave` gave") from None
    if clicks is None or isinstance(clicks, str):
        raise InvalidInput(f"clicks is {clicks!r}: expected a list of documents, empty if none was clicked")
    clicked = {_hashable(document) for document in clicks}
    unknown = clicked.difference(documents)
    if unknown:
        raise InvalidInput(f"{next(iter(unknown))!r} was clicked but is not on the list of {len(documents)} documents")
    marks = np.array([document in clicked for document in documents], np.bool_)
    return float(chosen.judge(desk(1, len(documents))._replace(worth=worth, clicked=marks), len(documents)))


def _hashable(document: Any) -> Any:
    """JSON turns tuples into lists."""
    return tuple(document) if isinstance(document, list) else document


def _desk_of(
    ranking_a: Sequence[Any], ranking_b: Sequence[Any], length: int, tau: float, missing: str
) -> tuple[list[Any], Desk]:
    if missing not in ("refuse", "last"):
        raise InvalidInput(f"missing is {missing!r}: expected 'refuse' or 'last'")
    if length < 1:
        raise InvalidInput(f"a list of {length} documents was asked for: expected at least 1")
    rankings = [
        ranking.tolist() if isinstance(ranking, np.ndarray) else list(ranking) for ranking in (ranking_a, ranking_b)
    ]
    ids = list(dict.fromkeys([*rankings[0], *rankings[1]]))
    numbers = {document: k for k, document in enumerate(ids)}
    on = desk(len(ids), min(length, max(len(ids), 1)), tau)
    for side, ranking in enumerate(rankings):
        if not ranking:
            raise InvalidInput("a ranking is empty: expected at least one document")
        if len(set(ranking)) < len(ranking):
            twice = next(document for document in ranking if ranking.count(document) > 1)
            raise InvalidInput(f"document {twice!r} stands twice in one ranking: expected each once")
        present = set(ranking)
        absent = [document for document in ids if document not in present]
        if absent and missing == "refuse":
            raise InvalidInput(
                f"the rankings have different documents: {absent[0]!r} is in only one of them. "
                "Rank the same documents, or pass missing='last' to let absent ones stand last"
            )
        order = [numbers[document] for document in [*ranking, *absent]]
        on.documents[side], on.places[side, order] = order, np.arange(len(ids))
        on.first[side], on.last[side] = np.arange(len(ids)), np.arange(1, len(ids) + 1)
        on.first[side, len(ranking) :], on.last[side, len(ranking) :] = len(ranking), len(ids)
    return ids, on
