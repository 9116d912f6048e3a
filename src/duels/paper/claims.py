"""The paper's statements about its experiments, and whether results support them.

Zoghi, Whiteson, Munos & de Rijke, ICML 2014: section "Experiments" and the appendix on the Condorcet assumption.
A policy that was run separately for several horizons counts at the end of each (t = horizon), like the markers of the
paper's figure; one that was run once counts at all its checkpoints.

Each problem is judged by itself: the claim holds there, fails, or is not decided. Over all problems a claim holds if it
holds on every one, holds in part if it holds on some, and fails if it holds on none and fails on at least one.
"""

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..errors import InvalidInput
from ..preference import PreferenceMatrix
from ..results import Results
from ..specs import split
from .estimates import Accuracy, ratio_of_means, share_of_time

NO_BREAK = "\N{NO-BREAK SPACE}"
HOLDS, IN_PART, FAILS, UNDECIDED = "holds", "holds in part", "fails", "not decided"
MARKS = {HOLDS: "✓", IN_PART: "~", FAILS: "✗", UNDECIDED: "–"}
CALLED = {"rucb": "RUCB", "savage": "Condorcet SAVAGE", "btm": "BTM"}
TIMES_LESS = 5  # the lower end of the paper's 5 to 10
ROUGHLY_A_FIFTH = 1 / 3  # at most: times are known to a factor of about 2
ENOUGH = 20  # runs, for a share of them to be meaningful
LEVELS = (0.5, 0.75, 0.9, 0.95, 1.0)
HEADLINE = 0.95  # of 100 runs the last five may be late by bad luck; 1.0 would measure the worst run alone


PAPER = {
    "regret-savage": "RUCB asymptotically accumulates 5 to 10 times less regret than Condorcet SAVAGE.",
    "regret-btm": "The contrast is even more stark when comparing to BTM.",
    "time-to-accuracy": "RUCB reaches higher levels of accuracy in roughly 20 % of the time of Condorcet SAVAGE.",
    "accuracy-final": "RUCB and Condorcet SAVAGE both end at accuracy 1 (read off Figure 1; the text is silent).",
    "condorcet-probability": "The probabilities P_K that K random rankers have a Condorcet winner all exceed 0.97.",
    "total-order": "The probability that K random rankers are totally ordered decreases rapidly as K grows.",
    "gamma": "All the dueling bandit problems of the experiments require γ > 1 (4.85, 11.6 and 47.3).",
}
PAPER_GAMMA = {16: 4.85, 32: 11.6, 64: 47.3}  # by the number of arms
FAR, ALIKE = 2, 1.1  # a γ so many times smaller is far milder; within the second factor it is about the same
OF_THE_POOL = ("condorcet-probability", "total-order")  # the others are about the problems


Numbers = dict[str, Any]  # what JSON can hold
Rows = dict[str, Numbers]  # by problem


class Claim(NamedTuple):
    """One statement of the paper, and what the results say about it."""

    key: str
    paper: str  # what the paper says
    found: str  # what the results say
    verdict: str  # a key of MARKS
    numbers: Numbers  # the same as plain data


class _Curve(NamedTuple):
    """One policy on one problem, over time."""

    policy: str
    regret: dict[int, np.ndarray]  # by time, (runs,)
    right: dict[int, np.ndarray]  # by time, (runs,) bool

    @property
    def runs(self) -> int:
        """The least number of runs at any time."""
        return min(map(len, self.regret.values()))

    def accuracy(self, last: int) -> Accuracy:
        """The accuracy over time, up to the last one."""
        times = sorted(t for t in self.right if t <= last)
        return Accuracy(np.array(times), np.stack([self.right[t][: self.runs] for t in times], axis=1))


Curves = dict[str, dict[str, _Curve]]  # by problem and base name


class Finding(NamedTuple):
    """The last three fields of a `Claim`."""

    found: str
    verdict: str
    numbers: Numbers


def paper_claims(
    results: Results, matrices: Mapping[str, PreferenceMatrix], pool: PreferenceMatrix | None = None
) -> list[Claim]:
    """Compare the paper's statements about its experiments with results.

    The policies are the first ones on each problem whose name, without parameters, is rucb, savage or btm. Problems
    without a Condorcet winner are not measured.

    Args:
        results: The results of an experiment.
        matrices: The preference matrix of every problem in the results, by the problem's name.
        pool: The matrix that the problems are subsets of; by default the largest of the matrices.

    Returns:
        The statements in the paper's order, each with a verdict.

    Raises:
        InvalidInput: If the results are empty or a matrix is missing.
    """
    curves = _curves(results)
    if not curves:
        raise InvalidInput("the results are empty: expected at least one run")
    for problem in curves:
        if problem not in matrices:
            raise InvalidInput(f"no matrix was given for problem {problem!r}: expected one by that name")
        if matrices[problem].condorcet_winner is None:
            curves[problem] = {}
    pool = max(matrices.values(), key=len) if pool is None else pool
    findings = {
        "regret-savage": _regret_savage(curves),
        "regret-btm": _regret_btm(curves, matrices),
        "time-to-accuracy": _time_to_accuracy(curves),
        "accuracy-final": _accuracy_final(curves),
        "condorcet-probability": _condorcet_probability(pool),
        "total-order": _total_order(pool),
        "gamma": _gamma({problem: matrices[problem] for problem in curves}),
    }
    if all(matrices[problem].condorcet_winner is None for problem in curves):
        none = Finding("No problem has a Condorcet winner, which the paper assumes.", UNDECIDED, {"problems": {}})
        findings |= dict.fromkeys([key for key in findings if key not in OF_THE_POOL], none)
    elif "condorcet" not in results.notion:
        other = f"The regret is {results.notion}'s, and the paper's is against the Condorcet winner."
        findings |= dict.fromkeys(("regret-savage", "regret-btm"), Finding(other, UNDECIDED, {"problems": {}}))
    return [Claim(key, PAPER[key], *finding) for key, finding in findings.items()]


def claims_text(claims: Sequence[Claim], width: int = 100) -> str:
    """Format claims for a terminal: mark and verdict, what the paper says, what was found.

    Args:
        claims: The claims, as `paper_claims` returns them.
        width: The number of characters in a line.
    """
    paragraphs = []
    for claim in claims:
        lines = [f"{MARKS[claim.verdict]} {claim.verdict}: {claim.key}"]
        for label, text in (("paper", claim.paper), ("found", claim.found)):
            words = textwrap.wrap(unbroken(text), width - 9, break_on_hyphens=False)
            lines += [f"  {label}  {words[0]}", *(" " * 9 + rest for rest in words[1:])]
        paragraphs.append("\n".join(lines).replace(NO_BREAK, " "))
    return "\n\n".join(paragraphs)


def unbroken(text: str) -> str:
    """Replace the spaces in `95 %` and `K = 8` by spaces at which a line does not break."""
    return re.sub(" (?=[%=])|(?<==) ", NO_BREAK, text)


def _curves(results: Results) -> Curves:
    curves: Curves = {}
    for (problem, policy), rows in results.frame.group_by("problem", "policy", maintain_order=True):
        base = str(policy).partition(":")[0]
        of_problem = curves.setdefault(str(problem), {})
        if base not in CALLED or base in of_problem:
            continue
        if rows["horizon"].n_unique() > 1:
            rows = rows.filter(pl.col("t") == pl.col("horizon"))
        curve = of_problem[base] = _Curve(str(policy), {}, {})
        for (t,), some in rows.sort("run").group_by("t", maintain_order=True):
            curve.regret[int(t)] = some["regret"].to_numpy()
            curve.right[int(t)] = some["correct"].to_numpy()
    return curves


def _together(curves: Curves, *bases: str) -> dict[str, tuple[list[int], list[_Curve]]]:
    """Find the problems on which all these policies were run, with the times they have in common."""
    found = {}
    for problem, of_problem in curves.items():
        if all(base in of_problem for base in bases):
            chosen = [of_problem[base] for base in bases]
            times = sorted(set.intersection(*(set(curve.regret) for curve in chosen)))
            if times:
                found[problem] = times, chosen
    return found


def _ratios(curves: Curves, *bases: str) -> Rows:
    """Compute, by problem, mean regrets over that of the first base, at the last common time."""
    found = {}
    for problem, (times, chosen) in _together(curves, *bases).items():
        t = times[-1]
        runs = [len(curve.regret[t]) for curve in chosen]
        means = [float(curve.regret[t].mean()) for curve in chosen]
        if min(runs) < 2 or min(means) <= 0:
            continue
        row: Numbers = {"t": t, "runs": min(runs)}
        for base, curve, mean in zip(bases, chosen, means):
            row[base] = {"policy": curve.policy, "regret": mean}
            if base != bases[0]:
                ratio, *interval = ratio_of_means(curve.regret[t], chosen[0].regret[t])
                row[base] |= {"ratio": ratio, "interval": interval}
        found[problem] = row
    return found


def _regret_savage(curves: Curves) -> Finding:
    rows = _ratios(curves, "rucb", "savage")
    if not rows:
        return _unmeasured(curves, "rucb", "savage")
    for row in rows.values():
        ratio, (low, high) = row["savage"]["ratio"], row["savage"]["interval"]
        held = ratio >= TIMES_LESS and low > 1
        row["verdict"] = HOLDS if held else FAILS if high < TIMES_LESS else UNDECIDED
    found = f"Condorcet SAVAGE's mean regret over RUCB's is {_ratios_said(rows, 'savage')}."
    if above := [problem for problem, row in rows.items() if row["savage"]["ratio"] > 10]:
        found += f" It is above 10 on {_listed(above)}."
    return _over_all(found, rows, curves)


def _regret_btm(curves: Curves, matrices: Mapping[str, PreferenceMatrix]) -> Finding:
    rows = _ratios(curves, "rucb", "savage", "btm")
    if not rows:
        return _unmeasured(curves, "rucb", "savage", "btm")
    idle = []
    for problem, row in rows.items():
        t, of_problem = row["t"], curves[problem]
        ratio, *interval = ratio_of_means(of_problem["btm"].regret[t], of_problem["savage"].regret[t])
        row["btm"]["over_savage"] = {"ratio": ratio, "interval": interval}
        lows, highs = zip(row["btm"]["interval"], interval)
        row["verdict"] = HOLDS if min(lows) > 1 else FAILS if min(highs) < 1 else UNDECIDED
        row["btm"]["first_departure"] = _first_departure(row["btm"]["policy"], matrices[problem], t)
        if (row["btm"]["first_departure"] or 0) > t:
            idle.append(problem)
            row["verdict"] = FAILS if row["verdict"] == FAILS else UNDECIDED
    against = _each((problem, _spanned(*row["btm"]["over_savage"].values())) for problem, row in rows.items())
    found = f"BTM's mean regret over RUCB's is {_ratios_said(rows, 'btm')}; over Condorcet SAVAGE's it is {against}."
    if idle:
        found += f" On {_listed(idle)} BTM's γ lets no arm leave within that time: its regret is that of random play."
    return _over_all(found, rows, curves)


def _first_departure(policy: str, matrix: PreferenceMatrix, horizon: int) -> float | None:
    """A time before which BTM cannot eliminate an arm: 2c* ≤ 1 needs n* ≥ 36 γ⁴ ln(2TK) duels of each of K arms."""
    try:
        given = split(policy, "policy")[1].get("gamma", "1")
        gamma = matrix.gamma if given == "own" else float(given)
        return 36 * gamma**4 * math.log(2 * horizon * matrix.arms) * matrix.arms
    except (ValueError, OverflowError):
        return None


def _time_to_accuracy(curves: Curves) -> Finding:
    rows: Rows = {}
    for problem, (times, (rucb, savage)) in _together(curves, "rucb", "savage").items():
        last = times[-1]
        levels = [share_of_time(rucb.accuracy(last), savage.accuracy(last), level)._asdict() for level in LEVELS]
        headline = levels[LEVELS.index(HEADLINE)]
        most, (least, top) = headline["between"][1], headline["interval"]
        held = most is not None and most <= ROUGHLY_A_FIFTH and top is not None and top < 1
        verdict = HOLDS if held else FAILS if least >= ROUGHLY_A_FIFTH else UNDECIDED
        runs = min(rucb.runs, savage.runs)
        rows[problem] = {"t": last, "runs": runs, "verdict": verdict if runs >= ENOUGH else UNDECIDED}
        rows[problem]["levels"] = levels
    if not rows:
        return _unmeasured(curves, "rucb", "savage")
    place = LEVELS.index(HEADLINE)
    said = "; ".join(f"on {problem} {_share_text(row['levels'][place], row['t'])}" for problem, row in rows.items())
    shares = "; ".join(f"{', '.join(map(_share_shown, row['levels']))} on {problem}" for problem, row in rows.items())
    found = (
        f"The time from which on at least {_percent(HEADLINE)} of the runs are right: {said}. The first "
        f"spans allow for the gaps between the times looked at, the intervals for these and the scatter of the runs. "
        f"Shares at {', '.join(map(_percent, LEVELS))} of the runs: {shares}."
    )
    finding = _over_all(found + _too_few(rows), rows, curves)
    return finding._replace(numbers={"level": HEADLINE, **finding.numbers})


def _accuracy_final(curves: Curves) -> Finding:
    rows: Rows = {}
    for problem, (times, (rucb, savage)) in _together(curves, "rucb", "savage").items():
        t, runs = times[-1], min(rucb.runs, savage.runs)
        ends = {"rucb": float(rucb.right[t].mean()), "savage": float(savage.right[t].mean())}
        verdict = FAILS if min(ends.values()) < 1 else HOLDS if runs >= ENOUGH else UNDECIDED
        rows[problem] = {"t": t, "runs": runs, "verdict": verdict, **ends}
    if not rows:
        return _unmeasured(curves, "rucb", "savage")
    said = _each((problem, f"{row['rucb']:.4g} and {row['savage']:.4g}") for problem, row in rows.items())
    found = f"The shares of runs that are right, RUCB's and Condorcet SAVAGE's, are {said}, {_when(rows)}."
    return _over_all(found + _too_few(rows), rows, curves)


def _condorcet_probability(pool: PreferenceMatrix) -> Finding:
    values = [pool.condorcet_probability(size) for size in range(1, pool.arms + 1)]
    least = min(values)
    where = values.index(least) + 1
    found = f"The smallest P_K of {pool.name} is {least:.4f}, at K = {where} of {pool.arms}."
    return Finding(found, _whether(least > 0.97), {"pool": pool.name, "least": least, "size": where})


def _total_order(pool: PreferenceMatrix) -> Finding:
    sizes = [2**k for k in range(2, pool.arms.bit_length()) if 2**k < pool.arms]
    if not sizes:
        found = f"{pool.name} has {pool.arms} arms: too few to draw subsets of 4 from."
        return Finding(found, UNDECIDED, {"pool": pool.name, "sizes": []})
    chances = [pool.total_order_probability(size) for size in sizes]
    said = _listed([f"{_chance(one.value)} at K = {size}" for size, one in zip(sizes, chances)])
    # It cannot rise, because a subset of an ordered set is ordered; the question is how far it falls.
    last = chances[-1].value
    verdict = HOLDS if last < 0.05 else IN_PART if last < 0.5 else FAILS
    rows = [{"size": size, **one._asdict()} for size, one in zip(sizes, chances)]
    return Finding(f"In {pool.name} it is {said}.", verdict, {"pool": pool.name, "sizes": rows})


def _gamma(matrices: Mapping[str, PreferenceMatrix]) -> Finding:
    rows: Rows = {}
    for problem, matrix in matrices.items():
        if matrix.condorcet_winner is not None:
            paper = PAPER_GAMMA.get(matrix.arms, min(PAPER_GAMMA.values()))
            rows[problem] = {"gamma": matrix.gamma, "verdict": _whether(matrix.gamma > 1), "arms": matrix.arms}
            rows[problem] |= {"paper": paper, "times": paper / matrix.gamma, "compared": _how_mild(matrix)}
    values = _each((problem, f"{row['gamma']:.4g}") for problem, row in rows.items())
    found = f"γ is {values}."
    return _over_all(f"{found} {_against_paper(rows)}" if rows else found, rows, matrices)


def _how_mild(matrix: PreferenceMatrix) -> str:
    """Compare γ with the paper's for as many arms, or with all of the paper's."""
    values = [PAPER_GAMMA[matrix.arms]] if matrix.arms in PAPER_GAMMA else list(PAPER_GAMMA.values())
    if matrix.gamma * FAR <= min(values):
        return "far milder"
    if matrix.gamma * ALIKE < min(values):
        return "milder"
    return "harsher" if matrix.gamma > max(values) * ALIKE else "about as harsh"


def _against_paper(rows: Mapping[str, Numbers]) -> str:
    """`With as many arms the paper's is 4.85, which is 3.53 times as large: these data are far milder.`"""
    same = all(row["arms"] in PAPER_GAMMA for row in rows.values())
    theirs = [f"{'' if row['arms'] in PAPER_GAMMA else 'at least '}{row['paper']:g}" for row in rows.values()]
    if len(set(theirs)) == 1:
        theirs = theirs[:1]
    smaller = all(row["times"] < 0.5 for row in rows.values())
    times = _listed([f"{1 / row['times'] if smaller else row['times']:.3g}" for row in rows.values()])
    kinds: dict[str, list[str]] = {}
    for problem, row in rows.items():
        kinds.setdefault(row["compared"], []).append(problem)
    said = [kind + f" on {_listed(some)}" * (len(kinds) > 1) for kind, some in kinds.items()]
    lead = "With as many arms the paper's is" if same else "The paper's is"
    size = f"{times} times {'smaller' if smaller else 'as large'}"
    return f"{lead} {_listed(theirs)}, which is {size}: these data are {_listed(said)}."


def _over_all(found: str, rows: Mapping[str, Numbers], problems: Iterable[str]) -> Finding:
    """Combine the verdicts of all problems; a problem without a row is not decided."""
    verdicts = {problem: rows[problem]["verdict"] if problem in rows else UNDECIDED for problem in problems}
    kinds = set(verdicts.values())
    if HOLDS in kinds:
        verdict = HOLDS if kinds == {HOLDS} else IN_PART
    else:
        verdict = FAILS if FAILS in kinds else UNDECIDED
    told = {
        "It holds on": [problem for problem in rows if verdicts[problem] == HOLDS] if len(kinds) > 1 else [],
        "It fails on": [problem for problem in rows if verdicts[problem] == FAILS] if len(kinds) > 1 else [],
        "These runs do not tell on": [problem for problem in rows if verdicts[problem] == UNDECIDED],
        "Not measured on": [problem for problem in verdicts if problem not in rows],
    }
    said = [f"{words} {_listed(some)}." for words, some in told.items() if some]
    return Finding(" ".join([found, *said]), verdict, {"problems": rows})


def _too_few(rows: Mapping[str, Numbers]) -> str:
    fewest = min(row["runs"] for row in rows.values())
    return f" To show that it holds takes {ENOUGH} runs, not {fewest}." if fewest < ENOUGH else ""


def _whether(right: bool) -> str:
    return HOLDS if right else FAILS


def _unmeasured(curves: Curves, *bases: str) -> Finding:
    missing = [CALLED[base] for base in bases if not any(base in of_problem for of_problem in curves.values())]
    if missing:
        found = f"{_listed(missing)} {'was' if len(missing) == 1 else 'were'} not run."
    elif _together(curves, *bases):
        found = "A ratio needs two runs or more, and some regret."
    else:
        found = f"No problem has {_listed([CALLED[base] for base in bases])} at one and the same time."
    return Finding(found, UNDECIDED, {"problems": {}})


def _ratios_said(rows: Mapping[str, Numbers], base: str) -> str:
    """`6.1 (5.8 to 6.4) on a and 7 (6 to 8) on b, at t = 1,000 (95 % intervals from 20 runs)`."""
    said = _each((problem, _spanned(row[base]["ratio"], row[base]["interval"])) for problem, row in rows.items())
    return f"{said}, {_when(rows)} (95 % intervals from {min(row['runs'] for row in rows.values())} runs)"


def _when(rows: Mapping[str, Numbers]) -> str:
    times = [row["t"] for row in rows.values()]
    told = [f"{t:,}" for t in (times[:1] if len(set(times)) == 1 else times)]
    return f"at t = {_listed(told)}"


def _shown(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _spanned(ratio: float, interval: Sequence[float]) -> str:
    """`6.1 (5.8 to 6.4)`."""
    return f"{_shown(ratio)} ({' to '.join(map(_shown, interval))})"


def _percent(share: float) -> str:
    return f"{100 * share:.1g} %" if 0 < share < 0.01 else f"{100 * share:,.0f} %"


def _chance(value: float) -> str:
    return "under 0.0001" if 0 < value < 1e-4 else f"{value:.2g}"


def _each(texts: Iterable[tuple[str, str]]) -> str:
    """`6.1 on a and 7 on b`, from pairs of a problem and a text about it."""
    return _listed([f"{text} on {problem}" for problem, text in texts])


def _listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _share_text(one: Numbers, last: int) -> str:
    """Write RUCB's and SAVAGE's time to an accuracy, if not after `last`, and the ratio of the two."""
    rucb, savage = (f"{one[base]:,}" if one[base] else f"none up to {last:,}" for base in ("rucb", "savage"))
    spans = f", within {_span(one['between'])}" * (one["share"] is not None)
    return (
        f"{rucb} with RUCB, {savage} with Condorcet SAVAGE ({_share_shown(one)}{spans}; 95 % interval "
        f"{_span(one['interval'])})"
    )


def _share_shown(one: Numbers) -> str:
    if one["share"] is not None:
        return _percent(one["share"])
    if one["rucb"] is not None:
        return f"under {_percent(one['between'][1])}"
    return "neither" if one["savage"] is None else "RUCB never"


def _span(ends: Sequence[float | None]) -> str:
    low, high = ends
    return f"{_percent(low or 0)} to {'any' if high is None else _percent(high)}"
