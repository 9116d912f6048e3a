"""What the paper says of its experiments, and whether results bear it out.

Zoghi, Whiteson, Munos & de Rijke, ICML 2014: section "Experiments" and the appendix on the Condorcet assumption.
A policy that was run afresh for several horizons counts at the end of each (t = horizon), as the markers of the paper's
figure do; one that was run once counts at all its checkpoints.
"""

import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from .errors import InvalidInput
from .preference import PreferenceMatrix
from .results import Results
from .specs import split

HOLDS, IN_PART, FAILS, NOT_MEASURED = "holds", "holds in part", "fails", "not measured"
MARKS = {HOLDS: "✓", IN_PART: "~", FAILS: "✗", NOT_MEASURED: "–"}
CALLED = {"rucb": "RUCB", "savage": "Condorcet SAVAGE", "btm": "BTM"}
LEVELS = (0.5, 0.75, 0.9, 0.95, 1.0)
HEADLINE = 0.95  # with 100 runs the last five may come late by bad luck, so 1.0 would speak of the worst run alone
NO_BREAK = "\N{NO-BREAK SPACE}"
ROUGHLY_A_FIFTH = 0.25  # what rounds to 20 % in tenths


PAPER = {
    "regret-savage": "RUCB asymptotically accumulates 5 to 10 times less regret than Condorcet SAVAGE.",
    "regret-btm": "The contrast is even more stark when comparing to BTM.",
    "time-to-accuracy": "RUCB reaches higher levels of accuracy in roughly 20 % of the time of Condorcet SAVAGE.",
    "accuracy-final": "RUCB and Condorcet SAVAGE both end at accuracy 1 (read off Figure 1; the text is silent).",
    "condorcet-probability": "The probabilities P_K that K random rankers have a Condorcet winner all exceed 0.97.",
    "total-order": "The probability that K random rankers are totally ordered decreases rapidly as K grows.",
    "gamma": "All the dueling bandit problems of the experiments require γ > 1 (4.85, 11.6 and 47.3).",
}


class Claim(NamedTuple):
    """One statement of the paper, and what these results say of it."""

    key: str
    paper: str  # what the paper says
    found: str  # what these results say, in words with numbers
    verdict: str  # a key of MARKS
    numbers: dict[str, Any]  # the same as plain data


class Ratio(NamedTuple):
    """A ratio of means and its confidence interval; floats, or arrays of one shape."""

    ratio: Any
    low: Any
    high: Any


class _Curve(NamedTuple):
    """One policy on one problem, over time."""

    policy: str
    regret: dict[int, np.ndarray]  # by time, (runs,)
    accuracy: dict[int, float]  # by time


Curves = dict[str, dict[str, _Curve]]  # by problem and base name
Finding = tuple[str, str, dict[str, Any]]  # found, verdict and numbers of a claim


def paper_claims(
    results: Results, matrices: Mapping[str, PreferenceMatrix], pool: PreferenceMatrix | None = None
) -> list[Claim]:
    """The paper's statements about its experiments, each with a verdict on these results.

    matrices: the preference matrix of every problem in the results, by the problem's name.
    pool: the matrix that the problems are subsets of; by default the largest of the matrices.

    The policies are the first of each problem whose name, without parameters, is rucb, savage or btm.
    """
    curves = _curves(results)
    if not curves:
        raise InvalidInput("the results are empty: expected at least one run")
    for problem in curves:
        if problem not in matrices:
            raise InvalidInput(f"no matrix was given for problem {problem!r}: expected one by that name")
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
    return [Claim(key, PAPER[key], *finding) for key, finding in findings.items()]


def claims_text(claims: Sequence[Claim], width: int = 100) -> str:
    """The claims for a terminal: mark and verdict in words, what the paper says, what was found."""
    paragraphs = []
    for claim in claims:
        lines = [f"{MARKS[claim.verdict]} {claim.verdict}: {claim.key}"]
        for label, text in (("paper", claim.paper), ("found", claim.found)):
            words = textwrap.wrap(unbroken(text), width - 9, break_on_hyphens=False)
            lines += [f"  {label}  {words[0]}", *(" " * 9 + rest for rest in words[1:])]
        paragraphs.append("\n".join(lines).replace(NO_BREAK, " "))
    return "\n\n".join(paragraphs)


def unbroken(text: str) -> str:
    """The text with spaces at which no line breaks in `95 %` and `K = 8`."""
    return re.sub(" (?=[%=])|(?<==) ", NO_BREAK, text)


def ratio_of_means(top: Any, bottom: Any) -> Ratio:
    """mean(top) / mean(bottom) over the last axis, with its 95 % confidence interval.

    For independent samples of positive numbers, at least two of each. The logarithm of the ratio is nearly normal with
    variance Σ var/(n·mean²) (delta method); Student's quantile at Welch's degrees of freedom allows for few runs.
    """
    from scipy.special import stdtrit

    samples = [np.asarray(sample, dtype=np.float64) for sample in (top, bottom)]
    ratio = samples[0].mean(axis=-1) / samples[1].mean(axis=-1)
    shares = [s.var(axis=-1, ddof=1) / (s.shape[-1] * s.mean(axis=-1) ** 2) for s in samples]
    variance = shares[0] + shares[1]
    slack = sum(share**2 / (s.shape[-1] - 1) for share, s in zip(shares, samples))
    spread = variance > 0  # else all runs are alike, and the interval is a point
    freedom = np.where(spread, variance**2, 1) / np.where(spread, slack, 1)
    reach = np.exp(stdtrit(freedom, 0.975) * np.sqrt(variance))
    return Ratio(*(one.tolist() if one.ndim == 0 else one for one in (ratio, ratio / reach, ratio * reach)))


def settled(accuracy: Mapping[int, float], level: float) -> int | None:
    """The first time from which on the accuracy stays at or above the level; None if it does not."""
    since = None
    for t in sorted(accuracy, reverse=True):
        if accuracy[t] < level:
            break
        since = t
    return since


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
        for (t,), some in rows.group_by("t"):
            curve.regret[int(t)] = some["regret"].to_numpy()
            curve.accuracy[int(t)] = float(some["correct"].to_numpy().mean())
    return curves


def _together(curves: Curves, *bases: str) -> dict[str, tuple[list[int], list[_Curve]]]:
    """The problems on which all these policies were run, with the times they have in common."""
    found = {}
    for problem, of_problem in curves.items():
        if all(base in of_problem for base in bases):
            chosen = [of_problem[base] for base in bases]
            times = sorted(set.intersection(*(set(curve.accuracy) for curve in chosen)))
            if times:
                found[problem] = times, chosen
    return found


def _ratios(curves: Curves, *bases: str) -> dict[str, dict[str, Any]]:
    """By problem: the mean regret of each base but the first, over that of the first, at the last common time."""
    found = {}
    for problem, (times, chosen) in _together(curves, *bases).items():
        t = times[-1]
        runs = [len(curve.regret[t]) for curve in chosen]
        means = [float(curve.regret[t].mean()) for curve in chosen]
        if min(runs) < 2 or min(means) <= 0:
            continue
        row: dict[str, Any] = {"t": t, "runs": min(runs)}
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
    ratios = {problem: row["savage"]["ratio"] for problem, row in rows.items()}
    unsure = [problem for problem, row in rows.items() if row["savage"]["interval"][0] <= 1]
    small = [problem for problem, ratio in ratios.items() if ratio < 5]
    verdict = HOLDS if not (unsure or small) else FAILS if unsure and small else IN_PART
    found = f"Condorcet SAVAGE's mean regret over RUCB's is {_ratios_said(rows, 'savage')}."
    remarks = (
        ("It is above 10 on {}.", [problem for problem, ratio in ratios.items() if ratio > 10]),
        ("It is below 5 on {}.", small),
        ("On {} these runs do not show that RUCB has less regret at all.", unsure),
    )
    found = " ".join([found, *(text.format(_and(problems)) for text, problems in remarks if problems)])
    return found + _left_out(curves, rows), verdict, {"problems": rows}


def _regret_btm(curves: Curves, matrices: Mapping[str, PreferenceMatrix]) -> Finding:
    rows = _ratios(curves, "rucb", "savage", "btm")
    if not rows:
        return _unmeasured(curves, "rucb", "savage", "btm")
    idle = []
    for problem, row in rows.items():
        row["btm"]["first_departure"] = _first_departure(row["btm"]["policy"], matrices[problem], row["t"])
        if (row["btm"]["first_departure"] or 0) > row["t"]:
            idle.append(problem)
    against = _each((problem, _shown(row["savage"]["ratio"])) for problem, row in rows.items())
    found = f"BTM's mean regret over RUCB's is {_ratios_said(rows, 'btm')}; Condorcet SAVAGE's is {against}."
    if idle:
        found += f" On {_and(idle)} BTM's γ lets no arm leave within that time: its regret is that of random play."
    verdict = _of_all([row["btm"]["ratio"] > row["savage"]["ratio"] for row in rows.values()])
    return found + _left_out(curves, rows), verdict, {"problems": rows}


def _first_departure(policy: str, matrix: PreferenceMatrix, horizon: int) -> float | None:
    """A time before which no arm of BTM can leave: 2c* ≤ 1 needs n* ≥ 36 γ⁴ ln(2TK), and K arms must have that many."""
    try:
        said = split(policy, "policy")[1].get("gamma", "1")
        gamma = matrix.gamma if said == "own" else float(said)
        return 36 * gamma**4 * math.log(2 * horizon * matrix.arms) * matrix.arms
    except (ValueError, OverflowError):
        return None


def _time_to_accuracy(curves: Curves) -> Finding:
    rows: dict[str, dict[str, Any]] = {}
    for problem, (times, chosen) in _together(curves, "rucb", "savage").items():
        rucb, savage = ({t: curve.accuracy[t] for t in times} for curve in chosen)
        levels = [{"level": level, **_share(times, settled(rucb, level), settled(savage, level))} for level in LEVELS]
        rows[problem] = {"times": times, "levels": levels}
    if not rows:
        return _unmeasured(curves, "rucb", "savage")
    headline = {problem: row["levels"][LEVELS.index(HEADLINE)] for problem, row in rows.items()}
    said = "; ".join(f"on {problem} {_share_said(one, rows[problem]['times'])}" for problem, one in headline.items())
    listed = "; ".join(f"{', '.join(map(_share_shown, row['levels']))} on {problem}" for problem, row in rows.items())
    found = (
        f"The time from which on at least {_percent(HEADLINE)} of the runs are right: {said}. The spans allow for the "
        f"gaps between the times looked at. Shares at {', '.join(map(_percent, LEVELS))} of the runs: {listed}."
    )
    paces = {one["pace"] for one in headline.values()} - {None}
    verdict = NOT_MEASURED if not paces else FAILS if "not earlier" in paces else IN_PART
    verdict = HOLDS if paces == {"quick"} else verdict
    return found + _left_out(curves, rows), verdict, {"level": HEADLINE, "problems": rows}


def _share(times: Sequence[int], rucb: int | None, savage: int | None) -> dict[str, Any]:
    """RUCB's time as a share of SAVAGE's, and the span it is in: both came after the time looked at before.

    `share` is None unless both are known, an end of the span if it is not; `pace` if these times cannot tell.
    """
    last, before = times[-1], {times[0]: 0, **dict(zip(times[1:], times))}
    low, high, share = 0.0, None, None
    if savage is not None:
        low = (last if rucb is None else before[rucb]) / savage
    if rucb is not None:
        passed = last if savage is None else before[savage]
        high = rucb / passed if passed else None
    if rucb is not None and savage is not None:
        share = rucb / savage
    if rucb == savage and low <= ROUGHLY_A_FIFTH:
        pace = None
    elif rucb is None or (savage is not None and rucb >= savage):
        pace = "not earlier"
    else:
        pace = "quick" if rucb <= ROUGHLY_A_FIFTH * (savage or last) else "earlier"
    return {"rucb": rucb, "savage": savage, "share": share, "between": [low, high], "pace": pace}


def _share_said(one: Mapping[str, Any], times: Sequence[int]) -> str:
    rucb, savage = (f"{one[base]:,}" if one[base] else f"none up to {times[-1]:,}" for base in ("rucb", "savage"))
    low, high = one["between"]
    span = f", within {_percent(low)} to {'any' if high is None else _percent(high)}" if one["share"] else ""
    return f"{rucb} with RUCB, {savage} with Condorcet SAVAGE ({_share_shown(one)}{span})"


def _share_shown(one: Mapping[str, Any]) -> str:
    if one["share"] is not None:
        return _percent(one["share"])
    if one["rucb"] is not None:
        return f"under {_percent(one['between'][1])}"
    return "neither" if one["savage"] is None else "RUCB never"


def _accuracy_final(curves: Curves) -> Finding:
    rows = {}
    for problem, (times, chosen) in _together(curves, "rucb", "savage").items():
        rows[problem] = {"t": times[-1], **{base: one.accuracy[times[-1]] for base, one in zip(CALLED, chosen)}}
    if not rows:
        return _unmeasured(curves, "rucb", "savage")
    said = _each((problem, f"{row['rucb']:.4g} and {row['savage']:.4g}") for problem, row in rows.items())
    found = f"The shares of runs that are right, RUCB's and Condorcet SAVAGE's, are {said}, {_when(rows)}."
    verdict = _of_all([row[base] == 1 for row in rows.values() for base in ("rucb", "savage")])
    return found + _left_out(curves, rows), verdict, {"problems": rows}


def _condorcet_probability(pool: PreferenceMatrix) -> Finding:
    values = [pool.condorcet_probability(size) for size in range(1, pool.arms + 1)]
    least = min(values)
    where = values.index(least) + 1
    found = f"The smallest P_K of {pool.name} is {least:.4f}, at K = {where} of {pool.arms}."
    return found, HOLDS if least > 0.97 else FAILS, {"pool": pool.name, "least": least, "size": where}


def _total_order(pool: PreferenceMatrix) -> Finding:
    sizes = [2**k for k in range(2, pool.arms.bit_length()) if 2**k < pool.arms]
    if not sizes:
        found = f"{pool.name} has {pool.arms} arms: too few to draw subsets of 4 from."
        return found, NOT_MEASURED, {"pool": pool.name, "sizes": []}
    chances = [pool.total_order_probability(size) for size in sizes]
    said = _and([f"{_chance(chance.value)} at K = {size}" for size, chance in zip(sizes, chances)])
    # It cannot rise, as part of an ordered subset is ordered too; the question is how far it falls.
    last = chances[-1].value
    verdict = HOLDS if last < 0.05 else IN_PART if last < 0.5 else FAILS
    rows = [{"size": size, **chance._asdict()} for size, chance in zip(sizes, chances)]
    return f"In {pool.name} it is {said}.", verdict, {"pool": pool.name, "sizes": rows}


def _gamma(matrices: Mapping[str, PreferenceMatrix]) -> Finding:
    values = {problem: matrix.gamma for problem, matrix in matrices.items()}
    found = f"γ is {_each((problem, f'{value:.4g}') for problem, value in values.items())}."
    return found, _of_all([value > 1 for value in values.values()]), {"problems": values}


def _unmeasured(curves: Curves, *bases: str) -> Finding:
    missing = [CALLED[base] for base in bases if not any(base in of_problem for of_problem in curves.values())]
    if missing:
        found = f"{_and(missing)} {'was' if len(missing) == 1 else 'were'} not run."
    elif _together(curves, *bases):
        found = "A ratio needs two runs or more, and some regret."
    else:
        found = f"No problem has {_and([CALLED[base] for base in bases])} at one and the same time."
    return found, NOT_MEASURED, {"problems": {}}


def _of_all(right: Sequence[bool]) -> str:
    return HOLDS if all(right) else IN_PART if any(right) else FAILS


def _ratios_said(rows: Mapping[str, Mapping[str, Any]], base: str) -> str:
    """`6.1 (5.8 to 6.4) on a and 7 (6 to 8) on b, at t = 1,000 (95 % intervals from 20 runs)`."""
    spans = {problem: " to ".join(map(_shown, row[base]["interval"])) for problem, row in rows.items()}
    said = _each((problem, f"{_shown(row[base]['ratio'])} ({spans[problem]})") for problem, row in rows.items())
    return f"{said}, {_when(rows)} (95 % intervals from {min(row['runs'] for row in rows.values())} runs)"


def _when(rows: Mapping[str, Mapping[str, Any]]) -> str:
    times = [row["t"] for row in rows.values()]
    shown = [f"{t:,}" for t in (times[:1] if len(set(times)) == 1 else times)]
    return f"at t = {_and(shown)}"


def _left_out(curves: Curves, rows: Mapping[str, Any]) -> str:
    others = [problem for problem in curves if problem not in rows]
    return f" Not measured on {_and(others)}." if others else ""


def _shown(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def _percent(share: float) -> str:
    return f"{100 * share:.1g} %" if 0 < share < 0.01 else f"{100 * share:,.0f} %"


def _chance(value: float) -> str:
    return "under 0.0001" if 0 < value < 1e-4 else f"{value:.2g}"


def _each(said: Iterable[tuple[str, str]]) -> str:
    return _and([f"{text} on {problem}" for problem, text in said])


def _and(words: Sequence[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)
