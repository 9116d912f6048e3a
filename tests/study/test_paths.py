"""Voters' own paths: sorts and brackets are found, and pairs that do not depend on a voter's answers are not."""

import itertools
import json
from typing import Any

import numpy as np
import pytest
from commands import duels_command
from voter_paths import PATHS, as_rows, interleave, voter_log

import duels
from duels.engine import compiling
from duels.policies import load_policy
from duels.study.stats import paths
from duels.study.stats.paths import LARGE, find_paths, find_paths_in

TESTS = (paths._meets_again, paths._stays, paths._next_pair, paths._find_left_out)


def traces(log):
    steps = paths._steps_of(*log)
    return [test(steps) for test in TESTS]


@pytest.mark.parametrize("spread", [0.0, 1.0], ids=["level", "spread"])
@pytest.mark.parametrize("shuffled", [True, False], ids=["own order", "same order"])
@pytest.mark.parametrize("path", PATHS)
def test_paths_are_found_in_a_few_hundred_answers(path, shuffled, spread):
    """100 voters who sort or knock out six arms, 500 to 1,000 answers; voters are mixed, and some answers are wrong."""
    for seed in range(3):
        log = interleave(voter_log(path, 6, 100, seed, shuffled, spread, noise=0.05), seed)
        assert log.shape[1] < 1200
        assert find_paths(*log) is not None, traces(log)


def test_what_is_said():
    log = voter_log("bracket", 6, 60, 1)
    assert find_paths(*log) == (
        "The pair a voter gets seems to depend on that voter's last answer: the winner, rather than the loser, comes "
        "back first 240 of 240 times (correlation 1.00 among votes on the same pair, 60 voters). Verdict and "
        "intervals then hold for the comparisons made, but not for what people prefer on average: arms that are "
        "equally good can look far apart. Keep only the first vote of each voter, or ask pairs that do not depend on "
        "the voter's own answers."
    )
    for path, arms, voters, shuffled, words in (
        ("merge sort", 8, 90, True, "the loser, rather than the winner, is in the next pair too"),
        ("merge sort", 4, 150, False, "the next pair says who won"),
        ("binary insertion", 6, 60, True, "pairs that earlier answers decide are left out, as in a sort"),
    ):
        assert words in find_paths(*voter_log(path, arms, voters, 1, shuffled))


APART = ("random", "all pairs", "in turn", "baseline")


@pytest.mark.parametrize("spread", [0.0, 0.5])
@pytest.mark.parametrize("path", APART)
def test_other_pairs_are_not(path, spread):
    for arms in (3, 6):
        for seed in range(5):
            assert find_paths(*voter_log(path, arms, 100, seed, True, spread, 0.1)) is None


select: Any = None
update: Any = None


def ask_voters(state, params, worth, voters, left, right, answer, coin, luck):
    """Fill a log: a policy chooses each pair from all answers before, whoever gave them."""
    arms = worth.shape[1]
    for t, voter in enumerate(voters):
        i, j = select(state, params, t + 1, coin)
        if i == j:
            j = (i + 1 + int(coin.random() * (arms - 1))) % arms
        won = worth[voter, i] > worth[voter, j]
        left[t], right[t], answer[t] = i, j, 0 if won else 1
        update(state, params, t + 1, i, j, 1.0 if won else 0.0)


def asked_log(how, arms, voters, each, seed, spread, in_turn=False):
    chosen = load_policy(how)
    ask = compiling.compile_with(ask_voters, {"select": chosen.module.select, "update": chosen.module.update})
    rng, coin, luck = map(np.random.default_rng, np.random.SeedSequence([3, seed]).spawn(3))
    order = np.repeat(np.arange(voters), each)
    log = np.zeros((4, len(order)), np.int64)
    log[0] = order if in_turn else rng.permutation(order)
    worth = spread * np.arange(arms) + rng.gumbel(size=(voters, arms))
    ask(chosen.start(arms), chosen.params, worth, *log, coin, luck)
    return log


@pytest.mark.parametrize("how", ["verdict", pytest.param("rucb", marks=pytest.mark.deep)])
def test_policies_that_learn_from_all_answers_are_not(how):
    """50 voters with 10 answers each, mixed: none of 60 logs; the largest size of any test is far below its limit."""
    sizes = []
    for seed in range(60):
        log = asked_log(how, (3, 5, 8)[seed % 3], 50, 10, seed, 0.5 * (seed % 2))
        assert find_paths(*log) is None
        sizes.append([one.size for one in traces(log)[:3]])
    assert np.abs(sizes).max() < LARGE - 1


def test_voters_in_turn_are_asked_by_their_own_answers():
    """Where voters come one after the other, even a policy that learns from all answers mostly learns from theirs."""
    size = [traces(asked_log("verdict", 5, 50, 10, seed, 0.0, in_turn=True))[0].size for seed in range(20)]
    assert np.mean(size) > 1.5  # of pairs that do not depend on answers 0 with a standard error of 0.22


@pytest.mark.deep
@pytest.mark.parametrize("path", APART)
def test_sizes_are_those_of_a_standard_normal(path):
    """Of 2,000 logs the mean square of each of the first three sizes is at most 1.2, and none is above 5.

    The mean square of 2,000 standard normal numbers is more than 1.16 with probability 10⁻⁶; one of 6,000 is above 5
    with probability 0.003. (The third test is smaller: its size is divided so that it holds for either half.)
    """
    sizes = []
    for seed in range(2000):
        log = voter_log(path, (3, 4, 6, 8)[seed % 4], 100, seed, True, 0.5 * (seed % 3), 0.1)
        sizes.append([one.size for one in traces(log)[:3]])
    assert (np.square(sizes).mean(axis=0) < 1.2).all()
    assert np.abs(sizes).max() < 5


def test_without_strata_strong_arms_would_look_like_a_path():
    """A strong arm that is asked about more comes back first and wins: found if pairs are not kept apart."""
    rng, rows = np.random.default_rng(0), []
    for voter in range(200):
        for _ in range(10):
            a, b = rng.choice(5, 2, replace=False, p=[0.1, 0.1, 0.6, 0.1, 0.1])
            rows.append((voter, a, b, int(rng.random() < (0.8 if b == 2 else 0.2 if a == 2 else 0.5))))
    log = np.array(rows).T
    assert find_paths(*log) is None
    steps = paths._steps_of(*log)
    has_low, has_high = paths._find_shared_arm(steps)
    chosen = np.flatnonzero(has_low != has_high)
    together = paths._compare(steps, chosen, has_low[chosen].astype(float), np.zeros(len(chosen), int))
    assert together.size > LARGE


def test_one_voter_or_none_says_nothing():
    log = voter_log("bracket", 8, 60, 0)
    assert find_paths(np.full(log.shape[1], -1), *log[1:]) is None
    assert find_paths(np.zeros(log.shape[1]), *log[1:]) is None
    assert find_paths(*np.zeros((4, 0), int)) is None
    ties = log.copy()
    ties[3] = 2
    assert find_paths(*ties) is None


def left_out_by_hand(log):
    """(size, answers) of the fourth test, row by row."""
    by_voter: dict[int, list[tuple[int, int, int]]] = {}
    for voter, left, right, won in log.T.tolist():
        winner, loser = (left, right) if won == 0 else (right, left)
        by_voter.setdefault(voter, []).append((winner, loser, won))
    rows = []
    for voter, answers in by_voter.items():
        for k, ((winner, loser, won), (a, b, _)) in enumerate(itertools.pairwise(answers)):
            stays = {winner, loser} & {a, b}
            if won > 1 or len(stays) != 1:
                continue
            (one,) = stays
            other, rival = winner + loser - one, a + b - one
            before = [(w, x) for w, x, said in answers[:k] if said < 2]
            met = [w == rival for w, x in before if {w, x} == {rival, other}]
            if met:
                record = sum(w == other for w, _ in before), sum(x == other for _, x in before)
                rows.append((voter, record, float(met[-1]), float(one == winner)))
    sums: dict[int, float] = {}
    for record in {row[1] for row in rows}:
        same = [row for row in rows if row[1] == record]
        feature, outcome = (np.mean([row[k] for row in same]) for k in (2, 3))
        for row in same:
            sums[row[0]] = sums.get(row[0], 0.0) + (row[2] - feature) * (row[3] - outcome)
    spread = np.sqrt(sum(x * x for x in sums.values()))
    return (sum(sums.values()) / spread if spread > 1e-9 else 0.0), len(rows)


@pytest.mark.parametrize("path", ["random", "binary insertion", "in turn"])
def test_left_out_is_its_definition(path):
    log = interleave(voter_log(path, 5, 40, 2, True, 0.3, 0.2), 2)
    log[3, ::9] = 2  # ties
    size, answers = left_out_by_hand(log)
    found = traces(log)[3]
    assert (found.size, found.answers) == (pytest.approx(size), answers)
    assert answers > 30


# ----- where votes are read -----


def write_csv(file, log):
    rows = as_rows(log)
    file.write_text("\n".join([",".join(rows[0]), *(",".join(row.values()) for row in rows)]) + "\n")


@pytest.fixture
def sorted_file(tmp_path):
    write_csv(tmp_path / "sorted.csv", interleave(voter_log("bracket", 6, 60, 1), 1))
    return tmp_path / "sorted.csv"


@pytest.fixture
def random_file(tmp_path):
    write_csv(tmp_path / "random.csv", voter_log("random", 6, 60, 1))
    return tmp_path / "random.csv"


def test_analyze_notes_it(sorted_file, random_file, tmp_path):
    found = duels.analyze(sorted_file)
    assert found.notes == (find_paths_in(duels.read_votes(sorted_file)),)
    assert found.notes[0] in str(found).splitlines()[-1]
    assert duels.analyze(random_file).notes == ()
    assert duels.analyze(as_rows(voter_log("bracket", 6, 60, 1))).notes
    votes = duels.read_votes(sorted_file)
    assert duels.analyze(votes.only(np.arange(len(votes)) < 50)).notes == ()


def test_votes_are_taken_in_the_order_of_their_times():
    log = voter_log("bracket", 6, 60, 1)
    rows = [{**row, "time": f"{1_700_000_000 + k}"} for k, row in enumerate(as_rows(log))]
    assert find_paths_in(duels.read_votes(rows[::-1])) == find_paths_in(duels.read_votes(rows))
    assert find_paths_in(duels.read_votes(rows)) is not None


def test_counts_have_no_order():
    rows = [{**row, "count": 2} for row in as_rows(voter_log("bracket", 6, 60, 1))]
    assert duels.analyze(rows).notes == ()


def test_import_warns(sorted_file, random_file, url):
    study = duels.create_study(list("abcdef"), "s", url)
    with pytest.warns(UserWarning, match=r"seems to depend on that voter's last answer.* 60 voters") as warned:
        assert study.import_votes(sorted_file) == 300
    assert warned[0].filename == __file__
    assert study.import_votes(random_file) == 600


def test_commands_say_it(sorted_file, random_file, url):
    words = "The pair a voter gets seems to depend"
    assert words in duels_command("analyze", str(sorted_file)).stdout
    assert words not in duels_command("analyze", str(random_file)).stdout
    assert json.loads(duels_command("analyze", str(sorted_file), "--format", "json").stdout)["notes"][0].startswith(
        words
    )
    assert words in duels_command("study", "import", "new", str(sorted_file), "--create", "--storage", url).stderr
    assert words not in duels_command("study", "import", "new", str(random_file), "--storage", url).stderr
