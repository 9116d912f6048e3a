"""The paper's statements about its experiments, and whether results support them.

Zoghi, Whiteson, Munos & de Rijke, ICML 2014: section "Experiments" and the appendix on the Condorcet assumption.
A policy that was run separately for several horizons counts at the end of each (t = horizon), like the markers of the
paper's figure; one that was run once counts at all its checkpoints.

Problems can be random draws of the same kind, such as 16 of 64 rankers. A kind is judged by the 95 % interval for its
median draw, which is an interval between draws; a problem that stands by itself by one between its runs. The claim
holds there if it is true of the whole interval, fails if it is true of none of it, and is not decided otherwise. Over
all kinds it holds if it holds on every one, fails if it fails on every one, and holds in part if it is shown to hold on
one and to fail on another.
"""

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ..errors import InvalidInput
from ..preference import PreferenceMatrix
from ..results import Results
from ..specs import split_spec
from .estimates import Accuracy, median_interval, ratio_of_means, share_interval, share_of_time

NO_BREAK = "\N{NO-BREAK SPACE}"
HOLDS, IN_PART, FAILS, UNDECIDED = "holds", "holds in part", "fails", "not decided"
MARKS = {HOLDS: "✓", IN_PART: "~", FAILS: "✗", UNDECIDED: "–"}
CALLED = {"rucb": "RUCB", "savage": "Condorcet SAVAGE", "btm": "BTM"}
TIMES_LESS = 5  # the lower end of the paper's 5 to 10
ROUGHLY_A_FIFTH = 1 / 3  # at most: times are known to a factor of about 2
ALL_RIGHT = 0.95  # accuracy that is 1 as far as a printed curve can tell
VANISHED, HALVED = 0.05, 0.5  # chances of a total order
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
Rows = dict[str, Numbers]  # by problem, or by kind
Kinds = dict[str, list[str]]  # the problems of each kind
Interval = Sequence[float | None]  # None is an end without a bound


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
    results: Results,
    matrices: Mapping[str, PreferenceMatrix],
    pool: PreferenceMatrix | None = None,
    draws: Mapping[str, Sequence[str]] | None = None,
) -> list[Claim]:
    """Compare the paper's statements about its experiments with results.

    The policies are the first ones on each problem whose name, without parameters, is rucb, savage or btm. Problems
    without a Condorcet winner are not measured.

    Args:
        results: The results of an experiment.
        matrices: The preference matrix of every problem in the results, by the problem's name.
        pool: The matrix that the problems are subsets of; by default the largest of the matrices.
        draws: Which problems are random draws of the same kind: their names, by the name of the kind. A kind is judged
            as a whole, by an interval between draws. By default each problem stands by itself.

    Returns:
        The statements in the paper's order, each with a verdict.

    Raises:
        InvalidInput: If the results are empty or a matrix is missing, or a draw is not in the results.
    """
    curves = _curves(results)
    if not curves:
        raise InvalidInput("the results are empty: expected at least one run")
    for problem in curves:
        if problem not in matrices:
            raise InvalidInput(f"no matrix was given for problem {problem!r}: expected one by that name")
        if matrices[problem].condorcet_winner is None:
            curves[problem] = {}
    kinds = _kinds(curves, draws or {})
    pool = max(matrices.values(), key=len) if pool is None else pool
    findings = {
        "regret-savage": _regret_savage(curves, kinds),
        "regret-btm": _regret_btm(curves, kinds, matrices),
        "time-to-accuracy": _time_to_accuracy(curves, kinds),
        "accuracy-final": _accuracy_final(curves, kinds),
        "condorcet-probability": _condorcet_probability(pool),
        "total-order": _total_order(pool),
        "gamma": _gamma({problem: matrices[problem] for problem in curves}, kinds),
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


def _kinds(problems: Iterable[str], draws: Mapping[str, Sequence[str]]) -> Kinds:
    """List the problems of each kind in the order of the results; a problem that is no draw is a kind of its own."""
    kind_of = {problem: kind for kind, drawn in draws.items() for problem in drawn}
    kinds: Kinds = {}
    for problem in problems:
        kinds.setdefault(kind_of.pop(problem, problem), []).append(problem)
    if kind_of:
        raise InvalidInput(f"draw {next(iter(kind_of))!r} is not in the results: expected the name of a problem there")
    return kinds


def judge(interval: Interval, is_true: Callable[[float], bool]) -> str:
    """Judge a claim about a number by an interval for it: it holds, fails, or is not decided.

    Args:
        interval: The interval; None is an end without a bound.
        is_true: Whether the claim is true of a number. It must be true above some number or below it.
    """
    low, high = interval
    ends = {is_true(-math.inf if low is None else low), is_true(math.inf if high is None else high)}
    return UNDECIDED if len(ends) == 2 else HOLDS if True in ends else FAILS


def combine_parts(verdicts: Iterable[str]) -> str:
    """Combine verdicts on the parts of a claim, all of which must hold."""
    found = set(verdicts)
    return FAILS if FAILS in found else HOLDS if found == {HOLDS} else UNDECIDED


def combine_kinds(verdicts: Iterable[str]) -> str:
    """Combine a claim's verdicts on all kinds: true of all, of none, or shown to be true of one and not of another."""
    found = set(verdicts)
    if {HOLDS, FAILS} <= found:
        return IN_PART
    return found.pop() if len(found) == 1 else UNDECIDED


def _by_kind(rows: Rows, kinds: Kinds, merge: Callable[[list[Numbers]], Numbers]) -> Rows:
    """Merge the rows of the draws of each kind; the row of a kind of one problem stays as it is."""
    found: Rows = {}
    for kind, problems in kinds.items():
        drawn = {problem: rows[problem] for problem in problems if problem in rows}
        if len(problems) == 1 and drawn:
            found[kind] = rows[problems[0]]
        elif drawn:
            several = list(drawn.values())
            same = {"t": max(row["t"] for row in several), "runs": min(row["runs"] for row in several)}
            found[kind] = same | merge(several) | {"draws": drawn}
    return found


def _median(lows: Sequence[float | None], highs: Sequence[float | None] | None = None) -> Numbers:
    """The median of draws that each have a value, or may have any from one value to another; and its interval."""
    least = [-math.inf if low is None else low for low in lows]
    most = least if highs is None else [math.inf if high is None else high for high in highs]
    interval = median_interval(least, most) or (-math.inf, math.inf)
    return {
        "between": [_finite_or_none(float(np.median(least))), _finite_or_none(float(np.median(most)))],
        "interval": [_finite_or_none(end) for end in interval],
        "range": [_finite_or_none(min(least)), _finite_or_none(max(most))],
    }


def _median_ratio(rows: Sequence[Numbers]) -> Numbers:
    """The median of the ratios of several draws, with its interval; one that shows nothing may be any smaller one."""
    ratios = [row["ratio"] for row in rows]
    lows = [0.0 if row.get("idle") else row["ratio"] for row in rows]
    found = _median(lows, ratios)
    return {"ratio": float(np.median(ratios)), "interval": found["interval"], "range": [min(ratios), max(ratios)]}


def _finite_or_none(number: float) -> float | None:
    return number if math.isfinite(number) else None


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


def _regret_savage(curves: Curves, kinds: Kinds) -> Finding:
    each = _ratios(curves, "rucb", "savage")
    rows = _by_kind(each, kinds, lambda drawn: {"savage": _median_ratio([row["savage"] for row in drawn])})
    if not rows:
        return _report_unmeasured(curves, "rucb", "savage")
    for row in rows.values():
        row["verdict"] = judge(row["savage"]["interval"], lambda ratio: ratio >= TIMES_LESS)
    found = f"Condorcet SAVAGE's mean regret over RUCB's is {_ratios_said(rows, 'savage')}."
    if above := [kind for kind, row in rows.items() if row["savage"]["ratio"] > 10]:
        found += f" It is above 10 on {_join_names(above)}."
    return _over_all(found + _ranges(rows, "savage"), rows, kinds)


def _regret_btm(curves: Curves, kinds: Kinds, matrices: Mapping[str, PreferenceMatrix]) -> Finding:
    each = _ratios(curves, "rucb", "savage", "btm")
    for problem, row in each.items():
        t, of_problem, btm = row["t"], curves[problem], row["btm"]
        ratio, *interval = ratio_of_means(of_problem["btm"].regret[t], of_problem["savage"].regret[t])
        btm["over_savage"] = {"ratio": ratio, "interval": interval}
        btm["first_departure"] = _first_departure(btm["policy"], matrices[problem], t)
        btm["idle"] = btm["over_savage"]["idle"] = (btm["first_departure"] or 0) > t
    rows = _by_kind(each, kinds, _merge_btm)
    if not rows:
        return _report_unmeasured(curves, "rucb", "savage", "btm")
    idle = []
    for kind, row in rows.items():
        both = [row["btm"], row["btm"]["over_savage"]]
        verdict = combine_parts(judge(one["interval"], lambda ratio: ratio > 1) for one in both)
        if "draws" not in row and row["btm"]["idle"]:  # among draws, the interval allows for it
            verdict = FAILS if verdict == FAILS else UNDECIDED
        row["verdict"] = verdict
        still = sum(one["btm"]["idle"] for one in row.get("draws", {kind: row}).values())
        if still:
            idle.append(f"{still} of {len(row['draws'])} draws of {kind}" if "draws" in row else kind)
    against = _each(
        (kind, _format_ratio(one["ratio"], one["interval"]))
        for kind, one in ((kind, row["btm"]["over_savage"]) for kind, row in rows.items())
    )
    found = f"BTM's mean regret over RUCB's is {_ratios_said(rows, 'btm')}; over Condorcet SAVAGE's it is {against}."
    if idle:
        found += (
            f" On {_join_names(idle)} BTM's γ lets no arm leave within that time: its regret is that of random play."
        )
    return _over_all(found, rows, kinds)


def _merge_btm(drawn: Sequence[Numbers]) -> Numbers:
    over_savage = _median_ratio([row["btm"]["over_savage"] for row in drawn])
    return {"btm": _median_ratio([row["btm"] for row in drawn]) | {"over_savage": over_savage}}


def _first_departure(policy: str, matrix: PreferenceMatrix, horizon: int) -> float | None:
    """A time before which BTM cannot eliminate an arm: 2c* ≤ 1 needs n* ≥ 36 γ⁴ ln(2TK) duels of each of K arms."""
    try:
        given = split_spec(policy, "policy")[1].get("gamma", "1")
        gamma = matrix.gamma if given == "own" else float(given)
        return 36 * gamma**4 * math.log(2 * horizon * matrix.arms) * matrix.arms
    except (ValueError, OverflowError):
        return None


def _time_to_accuracy(curves: Curves, kinds: Kinds) -> Finding:
    each: Rows = {}
    for problem, (times, (rucb, savage)) in _together(curves, "rucb", "savage").items():
        last = times[-1]
        levels = [share_of_time(rucb.accuracy(last), savage.accuracy(last), level)._asdict() for level in LEVELS]
        each[problem] = {"t": last, "runs": min(rucb.runs, savage.runs), "levels": levels}
    rows = _by_kind(each, kinds, _merge_levels)
    if not rows:
        return _report_unmeasured(curves, "rucb", "savage")
    place = LEVELS.index(HEADLINE)
    for row in rows.values():
        verdict = judge(row["levels"][place]["interval"], lambda share: share <= ROUGHLY_A_FIFTH)
        row["verdict"] = verdict if row["runs"] >= ENOUGH else UNDECIDED
    said = "; ".join(f"on {kind} {_share_text(row['levels'][place], row)}" for kind, row in rows.items())
    shares = "; ".join(f"{', '.join(map(_share_shown, row['levels']))} on {kind}" for kind, row in rows.items())
    found = (
        f"The time from which on at least {_percent(HEADLINE)} of the runs are right: {said}. The first "
        f"spans allow for the gaps between the times looked at, the intervals for these and {_scatter(rows)}. "
        f"Shares at {', '.join(map(_percent, LEVELS))} of the runs: {shares}."
    )
    finding = _over_all(found + _too_few(rows), rows, kinds)
    return finding._replace(numbers={"level": HEADLINE, **finding.numbers})


def _merge_levels(drawn: Sequence[Numbers]) -> Numbers:
    """The median share of several draws at each level; a draw in which a policy did not arrive has a span only."""
    levels = []
    for place, level in enumerate(LEVELS):
        several = [row["levels"][place] for row in drawn]
        found = _median([one["between"][0] for one in several], [one["between"][1] for one in several])
        shares = [one["share"] for one in several]
        known = None if None in shares else float(np.median(shares))
        arrived = {base: sum(one[base] is not None for one in several) for base in ("rucb", "savage")}
        levels.append({"level": level, "share": known, **found, "arrived": arrived})
    return {"levels": levels}


def _accuracy_final(curves: Curves, kinds: Kinds) -> Finding:
    each: Rows = {}
    for problem, (times, (rucb, savage)) in _together(curves, "rucb", "savage").items():
        t = times[-1]
        each[problem] = {"t": t, "runs": min(rucb.runs, savage.runs)}
        for base, curve in (("rucb", rucb), ("savage", savage)):
            right, runs = int(curve.right[t].sum()), len(curve.right[t])
            each[problem][base] = {"accuracy": right / runs, "interval": list(share_interval(right, runs))}
    rows = _by_kind(each, kinds, _merge_accuracies)
    if not rows:
        return _report_unmeasured(curves, "rucb", "savage")
    for row in rows.values():
        both = [row["rucb"], row["savage"]]
        row["verdict"] = combine_parts(judge(one["interval"], lambda share: share >= ALL_RIGHT) for one in both)
    said = _each((kind, f"{_right_said(row, 'rucb')} and {_right_said(row, 'savage')}") for kind, row in rows.items())
    found = f"The shares of runs that are right, RUCB's and Condorcet SAVAGE's, are {said}, {_when(rows)}"
    return _over_all(f"{found} (95 % intervals {_basis(rows)}).", rows, kinds)


def _merge_accuracies(drawn: Sequence[Numbers]) -> Numbers:
    found = {}
    for base in ("rucb", "savage"):
        shares = [row[base]["accuracy"] for row in drawn]
        median = _median(shares)
        found[base] = {"accuracy": float(np.median(shares)), "interval": median["interval"], "range": median["range"]}
    return found


def _condorcet_probability(pool: PreferenceMatrix) -> Finding:
    values = [pool.condorcet_probability(size) for size in range(1, pool.arms + 1)]
    least = min(values)
    where = values.index(least) + 1
    found = f"The smallest P_K of {pool.name} is {least:.4f}, at K = {where} of {pool.arms}; it is computed exactly."
    verdict = HOLDS if least > 0.97 else FAILS
    return Finding(found, verdict, {"pool": pool.name, "least": least, "size": where})


def _total_order(pool: PreferenceMatrix) -> Finding:
    sizes = [2**k for k in range(2, pool.arms.bit_length()) if 2**k < pool.arms]
    if not sizes:
        found = f"{pool.name} has {pool.arms} arms: too few to draw subsets of 4 from."
        return Finding(found, UNDECIDED, {"pool": pool.name, "sizes": []})
    chances = [pool.total_order_probability(size) for size in sizes]
    said = _join_names([f"{_chance(one.value)} at K = {size}" for size, one in zip(sizes, chances)])
    # It cannot rise, because a subset of an ordered set is ordered; the question is how far it falls.
    last = chances[-1]
    reach = 1.96 * last.standard_error  # 0 if it is exact
    interval = [max(last.value - reach, 0.0), min(last.value + reach, 1.0)]
    bounds = judge(interval, lambda chance: chance < VANISHED), judge(interval, lambda chance: chance < HALVED)
    verdict = {(HOLDS, HOLDS): HOLDS, (FAILS, HOLDS): IN_PART, (FAILS, FAILS): FAILS}.get(bounds, UNDECIDED)
    rows = [{"size": size, **one._asdict()} for size, one in zip(sizes, chances)]
    numbers = {"pool": pool.name, "interval": interval, "sizes": rows}
    return Finding(f"In {pool.name} it is {said}.", verdict, numbers)


def _gamma(matrices: Mapping[str, PreferenceMatrix], kinds: Kinds) -> Finding:
    rows: Rows = {}
    for kind, problems in kinds.items():
        drawn = [matrices[one] for one in problems if matrices[one].condorcet_winner is not None]
        if drawn:
            values, arms = [matrix.gamma for matrix in drawn], drawn[0].arms
            gamma, paper = float(np.median(values)), PAPER_GAMMA.get(arms, min(PAPER_GAMMA.values()))
            interval = _median(values)["interval"] if len(problems) > 1 else values * 2
            row: Numbers = {"gamma": gamma, "interval": interval, "verdict": judge(interval, lambda one: one > 1)}
            row |= {"arms": arms, "paper": paper, "times": paper / gamma, "compared": _how_mild(gamma, arms)}
            rows[kind] = row | ({"draws": values} if len(problems) > 1 else {})
    said = _each(
        (kind, _format_ratio(row["gamma"], row["interval"]) if "draws" in row else f"{row['gamma']:.4g}")
        for kind, row in rows.items()
    )
    several = {kind: row for kind, row in rows.items() if "draws" in row}
    found = f"γ is {said}{f' (95 % intervals {_basis(several)})' if several else ''}."
    return _over_all(f"{found} {_against_paper(rows)}" if rows else found, rows, kinds)


def _how_mild(gamma: float, arms: int) -> str:
    """Compare γ with the paper's for as many arms, or with all of the paper's."""
    values = [PAPER_GAMMA[arms]] if arms in PAPER_GAMMA else list(PAPER_GAMMA.values())
    if gamma * FAR <= min(values):
        return "far milder"
    if gamma * ALIKE < min(values):
        return "milder"
    return "harsher" if gamma > max(values) * ALIKE else "about as harsh"


def _against_paper(rows: Mapping[str, Numbers]) -> str:
    """`With as many arms the paper's is 4.85, which is 3.53 times as large: these data are far milder.`"""
    same = all(row["arms"] in PAPER_GAMMA for row in rows.values())
    theirs = [f"{'' if row['arms'] in PAPER_GAMMA else 'at least '}{row['paper']:g}" for row in rows.values()]
    if len(set(theirs)) == 1:
        theirs = theirs[:1]
    smaller = all(row["times"] < 0.5 for row in rows.values())
    times = _join_names([f"{1 / row['times'] if smaller else row['times']:.3g}" for row in rows.values()])
    kinds: dict[str, list[str]] = {}
    for problem, row in rows.items():
        kinds.setdefault(row["compared"], []).append(problem)
    said = [kind + f" on {_join_names(some)}" * (len(kinds) > 1) for kind, some in kinds.items()]
    lead = "With as many arms the paper's is" if same else "The paper's is"
    size = f"{times} times {'smaller' if smaller else 'as large'}"
    return f"{lead} {_join_names(theirs)}, which is {size}: these data are {_join_names(said)}."


def _over_all(found: str, rows: Mapping[str, Numbers], kinds: Iterable[str]) -> Finding:
    """Combine the verdicts on all kinds of problems; a kind without a row is not decided."""
    verdicts = {kind: rows[kind]["verdict"] if kind in rows else UNDECIDED for kind in kinds}
    differ = len(set(verdicts.values())) > 1
    several = [kind for kind, row in rows.items() if "draws" in row]
    told = {
        "It holds on": [kind for kind in rows if verdicts[kind] == HOLDS] if differ else [],
        "It fails on": [kind for kind in rows if verdicts[kind] == FAILS] if differ else [],
        "These draws do not tell on": [kind for kind in several if verdicts[kind] == UNDECIDED],
        "These runs do not tell on": [kind for kind in rows if verdicts[kind] == UNDECIDED and kind not in several],
        "Not measured on": [kind for kind in verdicts if kind not in rows],
    }
    said = [f"{words} {_join_names(some)}." for words, some in told.items() if some]
    return Finding(" ".join([found, *said]), combine_kinds(verdicts.values()), {"problems": rows})


def _too_few(rows: Mapping[str, Numbers]) -> str:
    fewest = min(row["runs"] for row in rows.values())
    return f" To tell takes {ENOUGH} runs, not {fewest}." if fewest < ENOUGH else ""


def _report_unmeasured(curves: Curves, *bases: str) -> Finding:
    missing = [CALLED[base] for base in bases if not any(base in of_problem for of_problem in curves.values())]
    if missing:
        found = f"{_join_names(missing)} {'was' if len(missing) == 1 else 'were'} not run."
    elif _together(curves, *bases):
        found = "A ratio needs two runs or more, and some regret."
    else:
        found = f"No problem has {_join_names([CALLED[base] for base in bases])} at one and the same time."
    return Finding(found, UNDECIDED, {"problems": {}})


def _ratios_said(rows: Mapping[str, Numbers], base: str) -> str:
    """`6.1 (5.8 to 6.4) on a and 7 (6 to 8) on b, at t = 1,000 (95 % intervals between 20 runs)`."""
    said = _each((kind, _format_ratio(row[base]["ratio"], row[base]["interval"])) for kind, row in rows.items())
    return f"{said}, {_when(rows)} (95 % intervals {_basis(rows)})"


def _basis(rows: Mapping[str, Numbers]) -> str:
    """`between 12 draws on a, of which it is the median, and between the 100 runs of one draw on b`."""
    several = {kind: len(row["draws"]) for kind, row in rows.items() if "draws" in row}
    single = {kind: row.get("runs") for kind, row in rows.items() if kind not in several}
    fewest = min((runs for runs in single.values() if runs is not None), default=None)
    if not several:
        return f"between {fewest} runs"
    counts = _join_names(list(dict.fromkeys(str(count) for count in several.values())))
    parts = [f"for the median of {counts} draws on {_join_names(list(several))}"]
    if fewest is not None:
        parts.append(f"between {fewest} runs of one draw on {_join_names(list(single))}")
    return ", ".join(parts)


def _ranges(rows: Mapping[str, Numbers], base: str) -> str:
    """` The draws go from 3.6 to 5.1 on a.`: empty if no kind has several."""
    said = [
        (kind, " to ".join(map(_format_number, row[base]["range"]))) for kind, row in rows.items() if "draws" in row
    ]
    return f" The draws go from {_each(said)}." if said else ""


def _scatter(rows: Mapping[str, Numbers]) -> str:
    several = sum("draws" in row for row in rows.values())
    return "the scatter of the " + ("runs" if not several else "draws" if several == len(rows) else "draws or runs")


def _right_said(row: Numbers, base: str) -> str:
    one = row[base]
    low, high = one["interval"]
    return f"{one['accuracy']:.4g} ({low or 0:.2g} to {1 if high is None else high:.2g})"


def _when(rows: Mapping[str, Numbers]) -> str:
    times = [row["t"] for row in rows.values()]
    told = [f"{t:,}" for t in (times[:1] if len(set(times)) == 1 else times)]
    return f"at t = {_join_names(told)}"


def _format_number(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _format_ratio(ratio: float, interval: Interval) -> str:
    """`6.1 (5.8 to 6.4)`, or `6.1 (too few draws for an interval)`."""
    ends = [end for end in interval if end is not None]
    span = " to ".join(map(_format_number, ends)) if len(ends) == 2 else "too few draws for an interval"
    return f"{_format_number(ratio)} ({span})"


def _percent(share: float) -> str:
    return f"{100 * share:.1g} %" if 0 < share < 0.01 else f"{100 * share:,.0f} %"


def _chance(value: float) -> str:
    return "under 0.0001" if 0 < value < 1e-4 else f"{value:.2g}"


def _each(texts: Iterable[tuple[str, str]]) -> str:
    """`6.1 on a and 7 on b`, from pairs of a problem and a text about it."""
    return _join_names([f"{text} on {problem}" for problem, text in texts])


def _join_names(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _share_text(one: Numbers, row: Numbers) -> str:
    """Write RUCB's and SAVAGE's time to an accuracy, if they got there, and the ratio; of draws the median ratio."""
    share, interval = _share_shown(one), f"95 % interval {_span(one['interval'])}"
    spans = f"within {_span(one['between'])}; " * (one["share"] is not None)
    if "draws" in row:
        draws = len(row["draws"])
        late = [f"{CALLED[base]} in {count}" for base, count in one["arrived"].items() if count < draws]
        short = f"; it is reached by {_join_names(late)} of {draws} draws" if late else ""
        return f"RUCB takes {share} of Condorcet SAVAGE's time (median of {draws} draws; {spans}{interval}{short})"
    rucb, savage = (f"{one[base]:,}" if one[base] else f"none up to {row['t']:,}" for base in ("rucb", "savage"))
    times = f"{rucb} with RUCB, {savage} with Condorcet SAVAGE"
    return f"{times} ({share}, {spans}{interval})" if spans else f"{times} ({share}; {interval})"


def _share_shown(one: Numbers) -> str:
    if one["share"] is not None:
        return _percent(one["share"])
    if "arrived" in one:  # of draws
        return _span(one["between"])
    if one["rucb"] is not None:
        return f"under {_percent(one['between'][1])}"
    return "neither" if one["savage"] is None else "RUCB never"


def _span(ends: Sequence[float | None]) -> str:
    low, high = ends
    return f"{_percent(low or 0)} to {'any' if high is None else _percent(high)}"
