"""Logs of voters whose next pair depends on their last answer, and of voters whose next pair does not."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

Prefers = Callable[[int, int], bool]  # whether a voter prefers the first of two arms; the question is logged


def stay(order: list[int], prefers: Prefers, winner: bool) -> None:
    """The winner, or the loser, meets the next arm."""
    one = order[0]
    for other in order[1:]:
        one = one if prefers(one, other) == winner else other


def merge_sort(order: list[int], prefers: Prefers) -> list[int]:
    if len(order) < 2:
        return order
    left, right = (merge_sort(half, prefers) for half in (order[: len(order) // 2], order[len(order) // 2 :]))
    merged = []
    while left and right:
        merged.append((left if prefers(left[0], right[0]) else right).pop(0))
    return merged + left + right


def insert(order: list[int], prefers: Prefers) -> list[int]:
    """Binary insertion."""
    ranked = order[:1]
    for one in order[1:]:
        low, high = 0, len(ranked)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if prefers(one, ranked[middle]) else (middle + 1, high)
        ranked.insert(low, one)
    return ranked


def bracket(order: list[int], prefers: Prefers) -> None:
    """Rounds of pairs; of an odd number, the last has no opponent."""
    while len(order) > 1:
        won = [a if prefers(a, b) else b for a, b in zip(order[::2], order[1::2])]
        order = won + order[2 * len(won) :]


PATHS: dict[str, Any] = {
    "winner stays": lambda order, prefers: stay(order, prefers, True),
    "loser stays": lambda order, prefers: stay(order, prefers, False),
    "merge sort": merge_sort,
    "binary insertion": insert,
    "bracket": bracket,
}


def voter_log(
    path: str, arms: int, voters: int, seed: int, shuffled: bool = True, spread: float = 0.0, noise: float = 0.0
) -> np.ndarray:
    """(4, n) voter, left, right and winner of voters who each follow a path over all arms; sides are random.

    Args:
        path: One of `PATHS`; or what does not depend on answers: ten `random` pairs, `all pairs` in an order of their
            own, `in turn`, which is all pairs in the same order from an arm of their own, or `baseline`, an arm of
            their own that meets all others.
        arms: How many arms.
        voters: How many voters.
        seed: Of everything random.
        shuffled: Whether each voter's path starts from an order of its own.
        spread: How far voters agree: 0 not at all, and at 5 almost.
        noise: How often an answer is turned round.
    """
    rng = np.random.default_rng(seed)
    rows: list[tuple[int, int, int, int]] = []
    for voter in range(voters):
        worth = spread * np.arange(arms) + rng.gumbel(size=arms)

        def prefers(a: int, b: int, voter: int = voter, worth: np.ndarray = worth) -> bool:
            won = bool((worth[a] > worth[b]) != (rng.random() < noise))
            turned = rng.random() < 0.5
            rows.append((voter, *((b, a) if turned else (a, b)), int(won == turned)))
            return won

        order = rng.permutation(arms).tolist() if shuffled else list(range(arms))
        if path in PATHS:
            PATHS[path](order, prefers)
            continue
        pairs = list(itertools.combinations(order, 2))
        if path == "all pairs":
            pairs = [pairs[k] for k in rng.permutation(len(pairs))]
        elif path == "in turn":
            start = int(rng.integers(arms))
            pairs = [((a + start) % arms, (b + start) % arms) for a, b in itertools.combinations(range(arms), 2)]
        elif path == "baseline":
            pairs = pairs[: arms - 1]
        else:
            pairs = [pairs[k] for k in rng.integers(len(pairs), size=10)]
        for a, b in pairs:
            prefers(a, b)
    return np.array(rows, np.int64).T


def interleave(log: np.ndarray, seed: int) -> np.ndarray:
    """The same rows with voters mixed at random, each voter's in the same order."""
    rng = np.random.default_rng(seed)
    order = np.argsort(log[0], kind="stable")
    places = np.argsort(rng.permutation(log[0]), kind="stable")
    mixed = np.empty_like(log)
    mixed[:, places] = log[:, order]
    return mixed


def as_rows(log, names="abcdefgh"):
    """The votes of a log, as `read_votes` takes them."""
    said = ("left", "right", "tie")
    return [
        {"left": names[a], "right": names[b], "winner": said[w], "voter": f"v{voter}"}
        for voter, a, b, w in log.T.tolist()
    ]
