"""Which question comes next: a study asks on its active arms what the policy `verdict` asks on all of its own."""

import json

import numpy as np
import pytest

import duels
from duels.policies import verdict
from duels.storage.storage import StudyRow
from duels.study.state import next_question, policy_state
from duels.study.state.counts import next_event
from duels.study.state.live import LiveState
from duels.study.stats.certainty import certainly_beats
from duels.study.stats.goal import new_goal

STEPS = {"strongest", "weakest_loss", "hopeful", "weakest_lead", "smallest_draw"}  # of the kernel


class Luck:
    """A generator whose numbers are given; a draw of a Beta distribution is its mean."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def random(self):
        return self.numbers.pop(0)

    def beta(self, a, b):
        return a / (a + b)


def begun(policy, arms, **goal):
    """The history of a study that has just been created."""
    settings = {"goal": new_goal(ties="halves", **goal)._asdict()}
    history = LiveState(StudyRow(1, "study", 0.0, policy, None, 7, 600.0, settings), duels.policies.load_policy(policy))
    history.take(next_event(history, "create", 0.0, note=json.dumps({"arms": arms})))
    return history


def table(rng, changed):
    """A history with random counts and open duels. If arms have changed, one was added and one was retired."""
    arms, margin = int(rng.integers(3, 8)), float(rng.choice([0.0, 0.1]))
    names = [f"arm {k}" for k in range(arms)]
    history = begun("random", names[: arms - changed], confidence=float(rng.choice([0.3, 0.8])), margin=margin)
    if changed:
        history.take(next_event(history, "add_arm", 0.0, note=json.dumps({"arm": names[-1]})))
        history.take(next_event(history, "retire_arm", 0.0, left_arm=int(rng.integers(arms - 1))))
    for i in range(arms):
        for j in range(i):
            n = int(rng.choice([0, 2, 10, 60]))
            history.wins[i, j] = rng.binomial(n, rng.choice([0.1, 0.5, 0.9]))
            history.wins[j, i] = n - history.wins[i, j]
            history.ties[i, j] = history.ties[j, i] = rng.integers(0, 20)
    for _ in range(int(rng.integers(0, 6))):
        left, right = (int(arm) for arm in rng.choice(list(history.places), 2, replace=len(history.places) == 1))
        shown = {"left_arm": left, "right_arm": right, "swapped": int(rng.integers(2))}
        history.take(next_event(history, "ask", 0.0, duel=len(history.left), attempt=0, **shown))
    look_ahead(history)
    return history


def look_ahead(history):
    """Have the questions know of all open duels, as a question does."""
    leased = history.list_leased(0.0)
    history._questions.look_ahead(len(leased), *history.pairs(leased)[:2])


def test_what_replaces_a_question():
    """The policy `verdict` does so itself, unless arms have changed or the others are to be ranked."""

    def redirects(policy, changes=(), **more):
        history = begun(policy, list("abc"), **more)
        for kind, fields in changes:
            history.take(next_event(history, kind, 0.0, **fields))
        return history._questions._redirects(history.policy)

    added, retired = ("add_arm", {"note": json.dumps({"arm": "d"})}), ("retire_arm", {"left_arm": 0})
    assert redirects("rucb")
    assert not redirects("verdict")
    assert not redirects("verdict:margin=0.1", margin=0.1)
    assert redirects("verdict", margin=0.1)
    assert redirects("verdict", after="rank")
    assert redirects("verdict", [added])
    assert redirects("verdict", [retired])
    assert redirects("verdict", [added, retired])


def judged(history):
    """`done` and `losses` of the active arms as the policy finds them, from the counts alone."""
    goal = history.goal
    params = verdict.Params(goal.confidence, goal.margin)
    state = verdict.init(len(history.names), None, params)
    state.wins[...], state.ties[...] = history.wins, history.ties
    for i in range(len(history.names)):
        for j in range(len(history.names)):
            if i != j:
                verdict.judge(state, params, i, j)
    return state.done, state.losses


def settled(history):
    """The same as a study finds them, where retired and later arms make a difference."""
    arms, found = list(history.places), history._questions.settled
    return np.array([found.with_others(arm)[arms] for arm in arms]), found.losses[arms]


def waiting(history):
    counts = np.zeros((len(history.names), len(history.names)))
    for left, right in zip(history.left, history.right):
        counts[left, right] += left != right
        counts[right, left] += left != right
    return counts


def noting(step, called):
    def noted(*arguments):
        called.add(step.__name__)
        return step(*arguments)

    return noted


def both(monkeypatch, history, i, j, done, losses, called, doubt, tie, draw):
    """What the kernel and the study ask where (i, j) is proposed, with the same luck."""
    among = np.ix_(list(history.places), list(history.places))
    counts = history.wins[among].astype(float), waiting(history)[among]
    luck = Luck(*([doubt] if i != j or losses[i] > 0 else []), draw)
    with monkeypatch.context() as patch:
        patch.setattr(verdict, "choose", lambda m, rng: int(tie * m))
        patch.setattr(next_question.NextQuestion, "_chances", lambda self: [doubt, tie, tie, draw])
        patch.setattr(np.random, "default_rng", lambda seed: Luck())
        for name in STEPS:
            patch.setattr(verdict, name, noting(getattr(verdict, name), called))
        return verdict.helpful(*counts, done, losses, i, j, luck), history._questions._useful(i, j)


def disagreements(monkeypatch, tables, changed):
    """How often a study asks something else than the kernel, and which functions the kernel called for that."""
    rng = np.random.default_rng(20 + changed)
    different, called = 0, set()
    for _ in range(tables):
        history = table(rng, changed)
        known = settled(history) if changed else judged(history)
        i, j = (int(place) for place in rng.integers(len(history.places), size=2))
        doubt, draw = rng.choice([0.05, 0.15, 0.95]), rng.choice([0.05, 0.15, 0.95])
        tie = 0.0 if draw < 0.1 else rng.random()  # of equal draws the kernel takes the first, a study any
        kernel, study = both(monkeypatch, history, i, j, *known, called, doubt, tie, draw)
        different += kernel != study
    return different, called


@pytest.mark.parametrize("changed", [False, True])
def test_a_study_asks_what_the_kernel_asks(monkeypatch, changed):
    """On random tables, with the same luck, pair for pair."""
    different, called = disagreements(monkeypatch, 1000, changed)
    assert different == 0
    assert called == STEPS


def leads_with(waiting=0.2, prior=10.0):
    return lambda won, lost, open: (won - lost + waiting * open) / np.sqrt(won + lost + open + prior)


def last_of(values, chance):
    return int(np.flatnonzero(values == values.min())[-1])


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_lead_of", leads_with(waiting=-0.2)),
        ("_lead_of", leads_with(waiting=0.0)),
        ("_lead_of", leads_with(prior=1.0)),
        ("beta_of", lambda won, lost, waiting: (won + 1, lost + 1)),
        ("LAST", 0.0),
        ("DOUBT", 0.2),
        ("_lowest", last_of),
    ],
)
def test_a_study_that_asks_something_else_is_found(monkeypatch, name, value):
    monkeypatch.setattr(next_question, name, value)
    different, _ = disagreements(monkeypatch, 200, False)
    assert different > 0


def literal_ranks(history, i, j, winner, chance):
    """What is asked where (i, j) is proposed and the others are to be ranked, pair by pair."""
    arms, wins, open = list(history.places), history.wins, waiting(history)
    beats = certainly_beats(history.tally, history.goal.confidence)
    rest = [arm for arm in arms if arm != winner]
    while len(rest) > 1:
        first = [arm for arm in rest if all(beats[arm, other] for other in rest if other != arm)]
        if not first:
            break
        rest.remove(first[0])

    def is_open(a, b):
        return a != b and a in rest and b in rest and not (beats[a, b] or beats[b, a])

    if len(rest) < 2 or (i != j and chance < 0.1) or is_open(arms[i], arms[j]):
        return i, j
    won = [1 + sum(wins[arm, other] for other in rest) for arm in rest]
    lost = [1 + sum(wins[other, arm] for other in rest) for arm in rest]
    draws = dict(zip(rest, np.random.default_rng(int(chance * 2**32)).beta(won, lost)))
    unbeaten = [arm for arm in rest if not any(beats[other, arm] for other in rest)]
    champion = max(unbeaten or rest, key=lambda arm: draws[arm])
    met = {other: wins[champion, other] + wins[other, champion] + open[champion, other] for other in arms}
    ahead = {other: wins[champion, other] - wins[other, champion] + 0.2 * open[champion, other] for other in arms}
    others = [other for other in arms if is_open(champion, other)]
    if not others:
        return i, j
    return arms.index(champion), arms.index(min(others, key=lambda k: ahead[k] / np.sqrt(met[k] + 10)))


@pytest.mark.parametrize("changed", [False, True])
def test_ranks_by_their_definition(monkeypatch, changed):
    rng, seen = np.random.default_rng(changed), set()
    for _ in range(400):
        history = table(rng, changed)
        winner = int(rng.choice(list(history.places)))
        i, j = (int(place) for place in rng.integers(len(history.places), size=2))
        chance = float(rng.choice([0.05, 0.3, 0.7]))
        monkeypatch.setattr(next_question.NextQuestion, "_chances", lambda self, chance=chance: [chance])
        found = history._questions._ranks(i, j, winner)
        assert found == literal_ranks(history, i, j, winner, chance)
        seen.add(found == (i, j))
    assert seen == {True, False}


def test_ranks_where_all_below_the_winner_lost(monkeypatch):
    """a beats all; b beats c beats d beats b, and b beats e. Of these, only c and d still have to meet e."""
    history = begun("random", list("abcde"))
    history.wins[0, 1:] = 30
    for i, j in ((1, 2), (2, 3), (3, 1), (1, 4)):
        history.wins[i, j] = 30
    seen = set()
    for chance in np.linspace(0.2, 0.9, 60):
        monkeypatch.setattr(next_question.NextQuestion, "_chances", lambda self, chance=chance: [chance])
        found = history._questions._ranks(1, 1, 0)
        assert found == literal_ranks(history, 1, 1, 0, chance)
        seen.add(found)
    assert seen <= {(1, 1), (2, 4), (3, 4), (4, 2), (4, 3)}
    assert (1, 1) in seen  # b is drawn, which has nobody left to meet


def test_answers_reach_what_is_settled_and_ranked():
    history = begun("random", list("abc"))
    for number in range(14):  # in a row: certain, see tests/policies/test_verdict.py
        history.take(next_event(history, "ask", 0.0, duel=number, attempt=0, left_arm=0, right_arm=1, swapped=0))
        history.take(next_event(history, "tell", 0.0, duel=number, attempt=0, answer="left"))
        if number == 0:  # whom the first answer is from decides what is certain
            settled, order = history._questions.settled, history._questions.order
    assert settled.losses.tolist() == [0, 1, 0]
    assert np.argwhere(order.beats).tolist() == [[0, 1]]
    assert (history._questions.settled, history._questions.order) == (settled, order)


@pytest.mark.parametrize("ties", ["halves", "skipped"])
def test_one_answer_is_entered_like_many(ties):
    """All that an answer can be: either side first, self-duels, ties, retired arms."""
    settings = {"goal": new_goal(ties=ties)._asdict()}
    history = LiveState(
        StudyRow(1, "study", 0.0, "random", None, 7, 600.0, settings), duels.policies.load_policy("random")
    )
    history.take(next_event(history, "create", 0.0, note=json.dumps({"arms": ["a", "b", "c"]})))
    for number, (left, right, swapped, answer) in enumerate(np.ndindex(3, 3, 2, 4)):
        shown = {"left_arm": left, "right_arm": right, "swapped": swapped}
        history.take(next_event(history, "ask", 0.0, duel=number, attempt=0, **shown))
        given = ("left", "right", "tie", "both_bad")[answer]
        history.take(next_event(history, "tell", 0.0, duel=number, attempt=0, answer=given))
    for _ in range(2):
        for duel in range(72):
            one, two = history._outcomes([duel]), history._outcomes([duel, duel])
            assert [value.tolist() * 2 for value in one] == [value.tolist() for value in two]
            assert not len(one[0]) or [value.dtype for value in one] == [value.dtype for value in two]
        history.take(next_event(history, "retire_arm", 0.0, left_arm=1))


def test_a_rival_is_the_kernel_s_with_open_duels_as_ties():
    """On random tables with retired arms and open duels."""
    rng, seen = np.random.default_rng(8), set()
    for number in range(400):
        history = table(rng, changed=number % 2 == 1)
        arms, policy = list(history.places), duels.policies.load_policy("rucb:alpha=0.7")
        halves = (history.wins + 0.5 * (history.ties + waiting(history)))[np.ix_(arms, arms)]
        champion, t = int(rng.integers(len(arms))), int(rng.integers(1, 500))
        expected = policy_state.rival(halves, champion, t + len(history.list_leased(0.0)), 0.7)
        assert history._questions._rival(champion, policy, t) == expected
        i, j = (int(place) for place in rng.integers(len(arms), size=2))
        history._questions.look_further(i, j)  # one more open duel
        halves[i, j] += 0.5
        halves[j, i] += 0.5
        expected = policy_state.rival(halves, champion, t + len(history.list_leased(0.0)) + 1, 0.7)
        assert history._questions._rival(champion, policy, t) == expected
        seen.add(expected)
    assert len(seen) > 3
